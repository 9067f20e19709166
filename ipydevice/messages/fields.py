"""From a template found in a text to the fields of a `Mismatch`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ipydevice.language import Sentence
from ipydevice.messages import devices, template, wrappers
from ipydevice.messages.entries import Entry
from ipydevice.messages.mismatch import Mismatch

_READ = {
    "device": devices.normalise,
    "known": devices.normalise,
    "cpu": devices.normalise,
    "type": devices.of_type,
    "enum": devices.of_type,
    "index": devices.of_index,
    "raw": devices.of_raw,
    "dlpack": devices.of_dlpack,
    "ctype": devices.of_ctype,
}


@dataclass
class _Facts:
    """What the marked places of one match say."""

    stated: list[str] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    named: str | None = None
    reference: str | None = None
    argument: str | None = None
    op: str | None = None
    method: str | None = None
    names: list[str] = field(default_factory=list)  # roles that the text itself names, of the next devices without one


def fill(entry: Entry, found: re.Match[str], text: str) -> Mismatch | None:
    """None where the template fits but the devices are equal, or only a dtype is told: a near miss."""
    facts = _Facts(argument=entry.argument, op=entry.op)
    for number, place in enumerate(entry.places):
        value = found[f"p{number}"]
        if value is not None and not _take(facts, place, value):
            return None
    if len(facts.stated) > 1 and not any(devices.differ(facts.stated[0], other) for other in facts.stated[1:]):
        return None
    host = facts.argument if entry.host == "*" else entry.host
    if host is not None:
        if facts.stated and facts.stated[0].partition(":")[0] == "cpu":
            return None
        facts.reference = "cpu"
        facts.named = facts.named or (facts.stated[0] if facts.stated else None)
    arguments: tuple[str, ...] = ()
    if facts.method is not None:
        facts.op, arguments = wrappers.checked(facts.method, facts.argument)
    if facts.argument is not None and facts.named is not None:
        facts.roles.setdefault(facts.argument, facts.named)
        if arguments and arguments[0] != facts.argument and facts.reference is not None:
            facts.roles.setdefault(arguments[0], facts.reference)
    stated = tuple(dict.fromkeys(facts.stated))
    return Mismatch(
        id=entry.id,
        family=entry.family,
        text=text,
        devices=stated,
        op=facts.op,
        argument=facts.argument,
        argument_device=facts.named,
        reference_device=facts.reference,
        arguments=arguments,
        roles=facts.roles,
        host_required=host,
        kind="meta" if "meta" in stated else entry.kind,
        library=entry.library,
        versions=entry.versions,
        unknown=unknown(entry.kind, stated, facts.op, facts.argument, facts.roles),
        meaning=entry.meaning,
        order=entry.order,
    )


def _take(facts: _Facts, place: template.Place, value: str) -> bool:
    """Add what one place says; False where it should state a device and states none."""
    if place.kind in template.DEVICES:
        device = _READ[place.kind](value)
        if device is None:
            return False
        facts.stated.append(device)
        _assign(facts, place.role, device)
    elif place.kind == "devices":
        facts.stated.extend(devices.inside(value))
    elif place.kind == "arg":
        facts.argument = facts.argument or value
    elif place.kind == "role":
        facts.names.append(value)
    elif place.kind == "number":
        facts.stated[-1] += f":{value}"
    elif place.kind == "op":
        facts.op = plain_op(value)
    elif place.kind == "method":
        facts.method = value
    return True


def _assign(facts: _Facts, role: str, device: str) -> None:
    name, _, part = role.rpartition("/")
    if part in ("named", "found"):
        facts.named = device
    elif part == "reference":
        facts.reference = device
    else:
        name = part
    if facts.names and (role == "" or role.startswith("/")):
        name = facts.names.pop(0)
    if name and name not in ("first", "second"):  # those are told apart by their order only
        facts.roles[name] = device
        if part == "named":
            facts.argument = facts.argument or name


def plain_op(name: str) -> str:
    """``aten.add.Tensor``, ``aten::add`` and ``torch.add()`` -> ``add``."""
    parts = re.split(r"::|\.", name.strip("():"))
    return parts[1] if len(parts) > 1 else parts[0]


def unknown(
    kind: str, stated: tuple[str, ...], op: str | None, argument: str | None, roles: dict[str, str]
) -> tuple[str, ...]:
    """What the text leaves open, in the words of the panel."""
    if kind == "availability":
        return ()
    left = []
    if not stated:
        left.append(Sentence("the devices"))
    elif len(stated) == 1 and kind == "placement":
        left.append(Sentence("the other device"))
    elif any(":" not in device and device not in ("cpu", "meta") for device in stated):
        left.append(Sentence("the number of the accelerator"))
    if op is None:
        left.append(Sentence("the operation"))
    if argument is None and len(roles) < 2:
        left.append(Sentence("which of its arguments"))
    left.append(Sentence("the variable"))
    return tuple(left)

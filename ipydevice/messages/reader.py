"""The general reader: texts of no known template that say that devices do not fit.

New wordings come with every release, and each library has its own.  A text counts when it states
devices that differ beside a word of conflict, or has a phrase so plain that no devices are needed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from ipydevice.language import Sentence
from ipydevice.messages import devices, fields, phrases
from ipydevice.messages.mismatch import Kind, Mismatch

# fmt: off
# words that stand before a device and name nothing
_NO_NAME = frozenset((
    "device", "devices", "it", "they", "but", "got", "found", "and", "or", "tensor", "tensors", "them", "both",
    "expected", "is", "are", "was", "on", "one", "all", "some", "the", "a", "an", "that", "this", "be", "vs", "to",
    "not", "from", "with", "other", "others", "another", "same", "type", "which", "argument", "different", "whereas",
    "while", "have", "only", "must", "should", "can", "already",
))
# never about placement, whatever the text says
_NEVER = frozenset((
    "OSError", "FileNotFoundError", "PermissionError", "IsADirectoryError", "ConnectionError", "TimeoutError",
    "KeyError", "NameError", "UnboundLocalError", "SyntaxError", "IndentationError", "UnicodeDecodeError",
    "ModuleNotFoundError", "ImportError", "AttributeError", "ArgumentError", "JSONDecodeError",
    "OutOfMemoryError", "ZeroDivisionError", "IndexError", "UsageError",
))
# fmt: on


class _Device(NamedTuple):
    name: str
    start: int
    end: int
    placed: bool  # something is there, or should be


def read(text: str, exception_type: str) -> Mismatch | None:
    """What a text of no known template says about devices, or None."""
    if exception_type in _NEVER or phrases.OTHER.search(text):
        return None
    plain = phrases.DUMP.sub(" ", text)
    stated = list(_stated(plain))
    names = tuple(dict.fromkeys(device.name for device in stated))
    differ = any(devices.differ(names[0], other) for other in names[1:])
    misfit = phrases.MISFIT.search(plain)
    demand = phrases.DEMAND.search(plain)
    other_quality = phrases.QUALITY.search(plain)
    if differ and not misfit and _is_choice(plain, stated):
        return None
    if differ and (misfit or demand or (not other_quality and _against(plain, stated))):
        return _conflict(plain, text, stated, names, demand)
    if phrases.UNAVAILABLE.search(plain):
        return _mismatch(text, names, kind="availability", family="availability")
    if differ:
        return None
    if names and names[0] != "cpu" and phrases.TO_HOST.search(plain):
        return _mismatch(text, names, named=names[0], reference="cpu", host="numpy" if "numpy" in text else "input")
    if demand is not None:
        return _demanded(plain, text, demand)
    if misfit and not other_quality and (phrases.SUBJECT.search(plain) or phrases.PLAINLY.search(plain)):
        return _mismatch(text, names)
    return None


def _is_choice(plain: str, stated: list[_Device]) -> bool:
    """``'cpu' or 'cuda'``: a list of what is allowed."""
    gaps = (plain[one.end : other.start] for one, other in itertools.pairwise(stated))
    return all(phrases.CHOICE.match(gap) for gap in gaps)


def _against(plain: str, stated: list[_Device]) -> bool:
    """A word of conflict, between places of things."""
    placed = {device.name for device in stated if device.placed}
    if len(placed) < 2:
        return False
    of_devices = re.search(r"\bdevices?\b|!=|≠", plain, re.IGNORECASE) is not None
    two_things = len(set(_roles(plain, stated).values())) > 1
    if phrases.AGAINST.search(plain) is None:
        return of_devices and two_things
    wanted_and_got = phrases.WANTED.search(plain) and phrases.GOT.search(plain)
    return bool(of_devices or two_things or wanted_and_got or phrases.SUBJECT.search(plain))


def _stated(text: str) -> Iterator[_Device]:
    for token in phrases.DEVICE.finditer(text):
        name = devices.of_type(token[0]) if token["type"] else devices.normalise(token[0])
        if name is not None and (name != "meta" or _is_place(text, token)):
            yield _Device(name, token.start(), token.end(), _is_placed(text, token))


def _is_placed(text: str, token: re.Match[str]) -> bool:
    before, after = text[: token.start()].rstrip(" '\"`"), text[token.end() :].lstrip(" '\"`")
    return (
        ":" in token[0]
        or token["type"] is not None
        or bool(phrases.PLACE_BEFORE.search(before) or phrases.PLACE_AFTER.search(after))
    )


def _is_place(text: str, token: re.Match[str]) -> bool:
    """ "meta" is a common word, so a word of place has to stand before it."""
    before, after = text[: token.start()].rstrip(" '\"`").lower(), text[token.end() :].lstrip(" '\"`").lower()
    return bool(re.search(r"\b(?:on|at|got|and|to|is|device|found|vs|expected|the)$|[=:,(]$", before)) and not re.match(
        r"data|learn|class|info|kernel|analysis", after
    )


def _conflict(
    plain: str, text: str, stated: list[_Device], names: tuple[str, ...], demand: re.Match[str] | None
) -> Mismatch:
    roles = _roles(plain, stated)
    first, last = stated[0], next(device for device in reversed(stated) if device.name != stated[0].name)
    between = plain[first.end : last.start]
    wanted = phrases.WANTED.search(plain, 0, first.start)
    named = reference = argument = None
    if wanted and phrases.GOT.search(between) and "same" not in plain[wanted.end() : first.start]:
        reference, named = first.name, last.name
        owner = phrases.WANTED_OF.search(plain, 0, first.start)
        if owner is not None and (argument := _usable(owner["label"])):
            roles[argument] = named
    elif phrases.WANTED.search(between) and "same" not in between:
        named, reference = first.name, last.name
    if named is not None and argument is None:
        argument = next((label for label, name in roles.items() if name == named), None)
        if argument is None and demand is not None and devices.normalise(demand["device"]) == reference:
            argument = _name_before(plain, demand.start())
    return _mismatch(text, names, roles=roles, argument=argument, named=named, reference=reference)


def _roles(plain: str, stated: list[_Device]) -> dict[str, str]:
    """Names right before a device: ``src is on cuda:0``, ``index.device=cpu``, ``mask (cpu)``."""
    roles: dict[str, str] = {}
    for number, device in enumerate(stated):
        start = stated[number - 1].end if number else 0
        label = phrases.LABEL.search(plain[max(start, device.start - 80) : device.start])
        if label is not None and (name := _usable(label["label"].removesuffix(".device"))):
            roles.setdefault(name, device.name)
    return roles


def _demanded(plain: str, text: str, demand: re.Match[str]) -> Mismatch | None:
    """``weights must be on CUDA``: the wanted device is all that is stated."""
    wanted = devices.normalise(demand["device"])
    if wanted is None or wanted == "meta":
        return None
    argument = _name_before(plain, demand.start())
    host = (argument or "input") if wanted == "cpu" else None
    return _mismatch(text, (wanted,), argument=argument, reference=wanted, host=host)


def _name_before(plain: str, end: int) -> str | None:
    before = re.search(r"(?:^|[\s'\"`(])([A-Za-z_][\w.]*)['\"`]?(?:\s+(?:tensors?|argument))?\s*$", plain[:end])
    return _usable(before[1]) if before is not None else None


def _usable(name: str) -> str | None:
    name = name.strip(".")
    return name if name and name.lower() not in _NO_NAME and name.lower() not in devices.KNOWN else None


def _mismatch(
    text: str,
    names: tuple[str, ...],
    *,
    family: str = "general",
    kind: Kind = "placement",
    roles: dict[str, str] | None = None,
    argument: str | None = None,
    named: str | None = None,
    reference: str | None = None,
    host: str | None = None,
) -> Mismatch:
    return Mismatch(
        id="reader",
        family=family,
        text=text,
        devices=names,
        argument=argument,
        argument_device=named,
        reference_device=reference,
        roles=roles or {},
        host_required=host,
        kind="meta" if kind == "placement" and "meta" in names else kind,
        unknown=fields.unknown(kind, names, None, argument, roles or {}),
        confidence="reader",
        meaning=Sentence("no known wording, but it speaks of devices that do not fit"),
    )

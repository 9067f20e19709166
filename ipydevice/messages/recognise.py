"""From an exception to what its text says about devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ipydevice.messages import devices, embedded, reader, wrappers
from ipydevice.messages.catalogue import Entry, matches
from ipydevice.messages.mismatch import Mismatch

# Every text in the catalogue contains one of these; plain `in` costs nanoseconds where a pattern costs microseconds.
_WORDS = ("device", "cuda", "cpu", "gpu", "meta", "mps", "xpu", "npu", "hpu", "xla", "numpy", "backend", "nvidia",
          "tensor", "fake")  # fmt: skip
_LONGEST = 40_000  # characters that are read of one message; the head and the tail of a longer one
_CHAIN = 24  # exceptions looked at

_CAUSE = BaseException.__dict__["__cause__"]
_CONTEXT = BaseException.__dict__["__context__"]
_SUPPRESS = BaseException.__dict__["__suppress_context__"]
_MEMBERS = BaseExceptionGroup.__dict__["exceptions"]


def recognise(exc: BaseException) -> Mismatch | None:
    """What the text of `exc`, its causes or its members says about devices; None when it is no device error."""
    found = find(exc)
    return None if found is None else found[1]


def find(exc: BaseException) -> tuple[BaseException, Mismatch] | None:
    """Like `recognise`, with the exception of the chain that says it: its traceback is the one to read."""
    first: tuple[BaseException, Mismatch] | None = None
    for link in _chain(exc):
        mismatch = _read(link)
        if mismatch is None:
            continue
        if first is None:
            first = link, mismatch
        elif mismatch.devices:
            # torchmetrics and others say in their own words that devices differ; only the cause names them
            return link, replace(mismatch, wrapped_in=mismatch.wrapped_in or first[1].library)
        if first[1].devices:
            break
    return first


def _chain(exc: BaseException) -> Iterator[BaseException]:
    """The exception, its members, causes and contexts, without running a class's own properties."""
    todo, seen = [exc], set()
    while todo and len(seen) < _CHAIN:
        link = todo.pop(0)
        if id(link) in seen or not issubclass(type(link), BaseException):
            continue
        seen.add(id(link))
        yield link
        if issubclass(type(link), BaseExceptionGroup):
            todo.extend(_MEMBERS.__get__(link))
        cause = _CAUSE.__get__(link)
        if cause is not None:
            todo.append(cause)
        context = _CONTEXT.__get__(link)
        if context is not None and not _SUPPRESS.__get__(link):
            todo.append(context)


def _read(exc: BaseException) -> Mismatch | None:
    text = _text(exc)
    folded = text.lower()
    if not any(word in folded for word in _WORDS):
        return None
    name = type(exc).__name__
    for part in embedded.parts(text, name):
        mismatch = _say(part.text, part.exception_type or name)
        if mismatch is not None:
            return replace(mismatch, text=text, exception_type=name, wrapped_in=part.wrapped_in, frames=part.frames)
    return None


def _text(exc: BaseException) -> str:
    try:
        text = str(exc)
    except Exception:  # a user's own __str__ may do anything
        return ""
    text = str.__str__(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST // 2] + "\n" + text[-_LONGEST // 2 :]


def _say(text: str, exception_type: str) -> Mismatch | None:
    near_miss = False
    for entry, found in matches(text, exception_type):
        mismatch = _fill(entry, found, text)
        if mismatch is not None:
            return mismatch
        near_miss = True
    return None if near_miss else reader.read(text)


def _fill(entry: Entry, found: re.Match[str], text: str) -> Mismatch | None:
    """None where the template fits but the devices are equal, or tell a dtype: a near miss."""
    stated: list[str] = []
    roles: dict[str, str] = {}
    named = reference = None
    argument, op, method, role_word = entry.argument, None, None, ""
    for number, place in enumerate(entry.places):
        value = found[f"p{number}"]
        if value is None:
            continue
        if place.kind in ("device", "type", "enum", "index", "raw"):
            device = _device(place.kind, value)
            if device is None:
                return None
            stated.append(device)
            for role in place.role.split("/"):
                if role == "named":
                    named = device
                elif role == "reference":
                    reference = device
                elif role or role_word:
                    roles[role or role_word] = device
                    if place.role.endswith("/named"):
                        argument = argument or role
        elif place.kind == "devices":
            stated.extend(devices.inside(value))
        elif place.kind == "arg":
            argument = argument or value
        elif place.kind == "role":
            role_word = value
        elif place.kind == "op":
            op = _plain_op(value)
        elif place.kind == "method":
            method = value
    if len(stated) > 1 and not any(devices.differ(stated[0], other) for other in stated[1:]):
        return None
    if entry.host is not None:
        if stated and stated[0].partition(":")[0] == "cpu":
            return None
        reference = reference or "cpu"
        named = named or (stated[0] if stated else None)
    arguments: tuple[str, ...] = ()
    if method is not None:
        op, arguments = wrappers.checked(method, argument)
    if argument is not None and named is not None:
        roles.setdefault(argument, named)
        if arguments and arguments[0] != argument and reference is not None:
            roles.setdefault(arguments[0], reference)
    return Mismatch(
        id=entry.id,
        family=entry.family,
        text=text,
        devices=tuple(dict.fromkeys(stated)),
        op=op,
        argument=argument,
        argument_device=named,
        reference_device=reference,
        arguments=arguments,
        roles=roles,
        host_required=entry.host,
        kind="meta" if entry.kind == "placement" and "meta" in stated else entry.kind,
        library=entry.library,
        versions=entry.versions,
        unknown=(),
        meaning=entry.meaning,
        order=entry.order,
    )


def _device(kind: str, value: str) -> str | None:
    if kind in ("type", "enum"):
        return devices.of_type(value)
    if kind == "index":
        return devices.of_index(value)
    if kind == "raw":
        return devices.of_raw(value)
    return devices.normalise(value)


def _plain_op(name: str) -> str:
    """``aten.add.Tensor`` and ``aten::add`` -> ``add``."""
    parts = name.replace("::", ".").split(".")
    return parts[1] if len(parts) > 1 else parts[0]

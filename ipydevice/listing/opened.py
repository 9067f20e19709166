"""What is inside a module, an optimizer or a container, a row each; of a module also a row for each submodule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnosis import Row
from ipydevice.language import say
from ipydevice.listing import notes
from ipydevice.listing.rows import row_of
from ipydevice.listing.survey import Many, survey
from ipydevice.listing.workspace import ParameterNames
from ipydevice.placement import FactReader, Found
from ipydevice.placement.members import MODULE_HOOKS

_MOST_LOOKS = 5_000_000  # a model of 100,000 layers has half of them
_IN_HOOKS = tuple(f".{table}[" for table in MODULE_HOOKS)


def bounds_of_one() -> placement.Bounds:
    """How far one thing is opened, at most: further than without ``-v``, since somebody has asked for it."""
    return placement.Bounds(placement.MOST_MEMBERS, placement.DEPTH, _MOST_LOOKS)


def opened(found: Many, reader: FactReader, name_of: ParameterNames, bounds: placement.Bounds) -> Iterator[Row]:
    """A row for each thing; call it in a `placement.quiet()` block. What a module's hooks hold is left out."""
    inner = placement.walk_within(bounds, found.value)
    tensors = [one for one in inner if not any(table in one.path for table in _IN_HOOKS)]
    if placement.is_module(found.value):
        yield from _of_module(found, tensors, reader, name_of)
    else:
        yield from (_row(found.name, one, reader, name_of) for one in tensors)


def _of_module(found: Many, tensors: Iterable[Found], reader: FactReader, name_of: ParameterNames) -> Iterator[Row]:
    """The submodules as they stand in the model, each before its own tensors; last what no submodule holds."""
    own: dict[int, list[Found]] = {}
    for one in tensors:
        own.setdefault(id(one.owner), []).append(one)
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [("", found.value)]
    while waiting:
        path, module = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        if path and (inside := survey(found.name + path, module, "module", reader)).devices:
            yield row_of(inside)
        yield from (_row(found.name, one, reader, name_of) for one in own.pop(id(module), ()))
        waiting += [
            (path + member.path, member.value)
            for member in reversed(list(placement.members(module)))
            if member.via == "module" and placement.is_module(member.value)
        ]
    for rest in own.values():
        yield from (_row(found.name, one, reader, name_of) for one in rest)


def _row(name: str, one: Found, reader: FactReader, name_of: ParameterNames) -> Row:
    facts = reader.facts(one.value)
    kind = one.via if one.via in ("parameter", "buffer", "state") else placement.kind_of(one.value) or "tensor"
    parameter = name_of(one.key) if one.via == "state" else ""
    note = (
        say("p is {parameter}", parameter=parameter)
        if parameter
        else ""
        if facts.memory is not None
        else notes.of_tensor(one.value)
    )
    return Row(
        name + one.path, kind, facts.device, "", True, facts.shape, facts.dtype, facts.bytes, "", note,
        facts.requires_grad,
    )  # fmt: skip

"""Objects -> rows of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ipydevice import placement
from ipydevice.diagnosis import Row
from ipydevice.language import say
from ipydevice.listing import notes, odd
from ipydevice.listing.oddity import Oddity, code_of, words_of
from ipydevice.listing.survey import One, Survey, survey
from ipydevice.placement import FactReader

_MANY = {"module", "optimizer", "container", "object", "function", "dataset", "loader"}


def torch_is_there() -> bool:
    """Whether torch is loaded; without it nothing has a device."""
    return placement.torch_class("tensor") is not None


def quietly() -> AbstractContextManager[Any]:
    """`placement.quiet()`, or nothing where torch is not loaded."""
    return placement.quiet() if torch_is_there() else nullcontext()


def surveys_of(
    names: Mapping[str, Any], reader: FactReader, looks: int = 0, unsure: list[str] | None = None
) -> Iterator[Survey]:
    """Everything with a device among the names, in their order.

    `looks` is how often all of them together may be looked at for a tensor; each gets `placement.FEW_LOOKS` anyway.
    Names of which that was not enough to tell join `unsure`.
    """
    plain, facts = placement.torch_class("tensor"), reader.facts
    for name, value in list(names.items()):
        if type(value) is plain:  # as most of ten thousand are
            yield One(name, value, "tensor", facts(value))
            continue
        most = max(placement.FEW_LOOKS, looks // 2)  # half of what is left: one large web does not take it all
        bounds = placement.Bounds(depth=placement.DEPTH, looks=most)
        kind = placement.kind_of(value, bounds)
        if kind is not None:
            yield survey(name, value, kind, reader)
        elif bounds.cut:
            looks -= most
            if unsure is not None:
                unsure.append(name)


def row_of(
    found: Survey, *, frame: str = "", user: bool = True, oddities: Sequence[Oddity] = (), note: str = ""
) -> Row:
    """One row; `oddities` are what is odd about it, `note` what is worth knowing."""
    if isinstance(found, One):
        return row_of_one(found, oddities, note, frame, user)
    said, remedy = (words_of(oddities), code_of(oddities)) if oddities else ("", "")
    shape = placement.shape_of(found.value) if found.kind == "array" else None
    dtype = placement.dtype_of(found.value) if found.kind == "array" else None
    if found.kind in _MANY and not note:
        note = notes.of_many(found)
    elif found.kind == "event" and not found.device:  # it is made on the stream that first records it
        note = say("not recorded yet")
    return Row(
        found.name, found.kind, found.device, frame, user, shape, dtype, found.bytes, said, note, remedy=remedy,
        at_least=found.is_cut,
    )  # fmt: skip


def row_of_one(found: One, oddities: Sequence[Oddity], note: str, frame: str = "", user: bool = True) -> Row:
    """The row of a tensor, as `row_of` has it."""
    device, shape, dtype, size, _, needs_gradient = found.facts
    said, remedy = (words_of(oddities), code_of(oddities)) if oddities else ("", "")
    return Row(found.name, found.kind, device, frame, user, shape, dtype, size, said, note, needs_gradient, remedy)


def _nameless(_: Any) -> str:
    return ""


def frame_rows(
    name_values: dict[str, object], frame: str, user: bool, limit: int = 300, reader: FactReader | None = None
) -> list[Row]:
    """The locals of one frame that have a device, at most `limit` of them.

    Args:
        name_values: names and values, as in ``frame.f_locals``.
        frame: how the table calls the frame, such as "In [7] train()".
        user: whether the frame runs the user's own code.
        limit: most rows to make; the values behind are not looked at.
        reader: of the frames before, which knows the classes that it has met there.
    """
    if limit < 1 or not torch_is_there():
        return []
    rows: list[Row] = []
    with quietly():
        reader = FactReader() if reader is None else reader
        for found in surveys_of(name_values, reader):
            rows.append(row_of(found, frame=frame, user=user, oddities=odd.of_object(found, reader, _nameless)))
            if len(rows) >= limit:
                break
    return rows

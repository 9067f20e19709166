"""A namespace -> an `Inventory`: which names, in which order, with what between them."""

from __future__ import annotations

import difflib
import fnmatch
import gc
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from ipydevice import placement
from ipydevice.diagnosis import Inventory, Row
from ipydevice.language import Sentence, joined, say
from ipydevice.listing import notes, odd, workspace
from ipydevice.listing.layers import layers_of
from ipydevice.listing.memory import Kept, memory_of, ways_to_free
from ipydevice.listing.oddity import Oddity, fixes_of
from ipydevice.listing.opened import bounds_of_one, opened
from ipydevice.listing.rows import quietly, row_of, row_of_one, surveys_of, torch_is_there
from ipydevice.listing.survey import One, Survey, survey
from ipydevice.placement import FactReader

MOST_ROWS = 100_000
MOST_FIXES = 9
_MOST_LOOKS = 100_000  # beyond the first, at all names in which no tensor is found soon: half a second
_MOST_NAMED = 5  # names that are told where one is wrong
SORTS = ("bytes", "name", "device")
KINDS = (
    "tensor", "parameter", "buffer", "module", "optimizer", "scheduler", "scaler", "loader", "dataset", "generator",
    "stream", "event", "storage", "packed sequence", "array", "container", "function", "object", "state",
)  # fmt: skip

# What IPython keeps in the namespace for itself (IPython/core/interactiveshell.py, init_user_ns; history.py).
_OF_IPYTHON = re.compile(r"_|__|___|_i+|_i?\d+|_ih|_oh|_dh|__\w+__|_exit_code")
_IPYTHONS_WORDS = frozenset({"In", "Out", "get_ipython", "exit", "quit", "open"})


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection while thousands of small records are made: it would take half of the time.

    It surrounds the whole of a function, so that when collection is on again most of the records are gone.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def list_namespace(namespace: Mapping[str, Any], cells: Sequence[str] = (), kept: Kept = ()) -> Inventory:
    """Everything with a device in a namespace, in the order in which the names were first bound."""
    return select(namespace, cells=cells, kept=kept)


def select(namespace: Mapping[str, Any], **wishes: Any) -> Inventory:
    """What has a device in a namespace; arguments and errors are those of `examine`."""
    return examine(namespace, **wishes)[0]


@_no_collection()
def examine(
    namespace: Mapping[str, Any],
    *,
    names: Sequence[str] | None = None,
    device: str | None = None,
    kind: str | None = None,
    odd_only: bool = False,
    sort: str | None = None,
    verbose: bool = False,
    cells: Sequence[str] = (),
    kept: Kept = (),
) -> tuple[Inventory, list[Oddity]]:
    """What has a device in a namespace, and what is odd about the rows that are listed.

    Args:
        namespace: names and values, such as ``globals()``.
        names: names or patterns to list ("model", "opt*", "model.fc"); all by default.
        device: only what is on this device, wholly or in part; "cuda" means every card.
        kind: only rows of this kind: "tensor", "module", "optimizer", ...
        odd_only: only rows about which something is odd.
        sort: "bytes" (largest first), "name" or "device"; by default the order of the namespace.
        verbose: also a row for each tensor inside modules, optimizers and containers.
        cells: texts of the cells that ran, in order; they tell more of what is odd.
        kept: objects that are held beside the names; they tell who else holds memory.

    Raises:
        ValueError: a name that is not there, or a device, kind or sort that is not known.
    """
    _check(kind, sort)
    if not torch_is_there():
        return Inventory(), []
    wanted = _Wanted(device, kind, odd_only)
    own = _users(namespace)
    with quietly():
        reader = FactReader()
        unsure: list[str] = []
        everything = list(surveys_of(own, reader, _MOST_LOOKS, unsure))
        _check_device(device, {where for found in everything for where in found.devices})
        remarks = workspace.remarks(everything, cells, reader)
        shown = everything if not names else _chosen(everything, own, names, reader, unsure)
        name_of = workspace.ParameterNames(everything)
        rows: list[Row] = []
        held: dict[Any, tuple[str, int]] = {}
        first: dict[Any, str] = {}
        oddities: list[tuple[str, list[Oddity]]] = []
        unfiltered = wanted.all
        is_cut = False
        for found in shown:
            if device is not None and not any(_is_on(one, device) for one in found.devices):
                continue
            said = odd.of_object(found, reader, name_of)
            if found.name in remarks:
                said = [*said, *remarks[found.name]]
            if said:
                oddities.append((found.name, said))
            if isinstance(found, One):  # there may be ten thousand of them
                identity, held_there = found.place
                sharer = first.get(identity)
                if sharer is None:
                    first[identity] = found.name
                note = "" if sharer is None else say("shares storage with {name}", name=sharer)
                if found.facts.memory is None or found.facts.shape is None or not placement.is_plain(found.value):
                    note = note or notes.of_tensor(found.value)
                row = row_of_one(found, said, note)
                if unfiltered or wanted.takes(row):
                    rows.append(row)
                    held[identity] = held_there
                continue
            row = row_of(found, oddities=said)
            if found.kind == "module" and len(found.registered) > 1:
                row = replace(row, layers=layers_of(found.value, reader))
            bounds = bounds_of_one()
            listed = list(wanted.of(row, opened(found, reader, name_of, bounds) if verbose else ()))
            if listed:
                rows += listed
                held.update(found.memory)
                is_cut |= found.is_cut or bool(bounds.cut)
        memory = (
            ()
            if names or device or kind or odd_only
            else memory_of(held, _tensors(everything), kept, reader, is_cut=is_cut)
        )
    if sort is not None:
        rows.sort(key=_KEYS[sort])
    totals: dict[str, int] = {}
    for where, size in held.values():
        totals[where] = totals.get(where, 0) + size
    if device is not None:
        totals = {where: size for where, size in totals.items() if _is_on(where, device)}
    mends = list(islice(fixes_of(oddities), MOST_FIXES))
    found_out = Inventory(
        tuple(rows[:MOST_ROWS]), totals, max(0, len(rows) - MOST_ROWS),
        title="" if rows else wanted.none(len(everything)), fixes=(*mends, *ways_to_free(memory)), memory=memory,
        notes=() if names or not unsure else ((Sentence("note"), _not_all_seen(unsure)),), at_least=is_cut,
    )  # fmt: skip
    return found_out, [one for _, said in oddities for one in said]


def refine(
    inventory: Inventory, *, device: str | None, kind: str | None, odd_only: bool, sort: str | None
) -> Inventory:
    """The rows of an inventory that are asked for, as `select` has them. Raises ValueError as it does."""
    _check(kind, sort)
    _check_device(device, {where for row in inventory.rows for where in row.device.split(" + ")})
    wanted = _Wanted(device, kind, odd_only)
    rows = [row for row in inventory.rows if wanted.takes(row)]
    if sort is not None:
        rows.sort(key=_KEYS[sort])
    totals = {where: size for where, size in inventory.bytes_by_device.items() if not device or _is_on(where, device)}
    nothing = "" if rows else wanted.none(len(inventory.rows))
    notes = (*inventory.notes, (Sentence("note"), nothing)) if nothing else inventory.notes
    return replace(inventory, rows=tuple(rows), bytes_by_device=totals, notes=notes)


def _check(kind: str | None, sort: str | None) -> None:
    if sort is not None and sort not in SORTS:
        raise ValueError(say("sort is one of {words}, but got {given}", words=", ".join(SORTS), given=repr(sort)))
    if kind is not None and kind not in KINDS:
        raise ValueError(say("kind is one of {words}, but got {given}", words=", ".join(KINDS), given=repr(kind)))


def _check_device(device: str | None, present: set[str]) -> None:
    """A device that nothing is on may be right, as "cuda:1" is on a machine with one card; "gpu" is no device."""
    if device is None or any(_is_on(where, device) for where in present):
        return
    try:
        sys.modules["torch"].device(device)
    except RuntimeError:
        told = say('device takes one such as "cpu", "cuda" or "cuda:1", but got {given}', given=repr(device))
        if present:
            told = say("{error}; here are {devices}", error=told, devices=joined(sorted(present)))
        raise ValueError(told) from None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which rows are asked for."""

    device: str | None
    kind: str | None
    odd_only: bool

    @property
    def all(self) -> bool:
        """Whether nothing narrows the table."""
        return self.device is None and self.kind is None and not self.odd_only

    def none(self, names: int) -> str:
        """What to say where no row is left, or "" where there were no names at all."""
        if not names or self.all:
            return ""
        what = say("nothing odd" if self.odd_only else "nothing")
        if self.kind:
            what = say("{what} of kind {kind}", what=what, kind=self.kind)
        if self.device:
            what = say("{what} on {device}", what=what, device=self.device)
        among: Sentence = (
            "{what} among {count} name with a device" if names == 1 else "{what} among {count} names with a device"
        )
        return say(among, what=what, count=f"{names:,}")

    def takes(self, row: Row) -> bool:
        return (
            (self.device is None or _is_on(row.device, self.device))
            and (self.kind is None or row.kind == self.kind)
            and (not self.odd_only or bool(row.odd))
        )

    def of(self, row: Row, inner: Iterable[Row]) -> Iterator[Row]:
        """The row of a thing and those inside it that are wanted."""
        if self.takes(row):
            yield row
        yield from filter(self.takes, inner)


def _tensors(everything: Iterable[Survey]) -> Iterator[Any]:
    for found in everything:
        yield from found.tensors


_KEYS: dict[str, Any] = {
    "bytes": lambda row: -(row.bytes or 0),
    "name": lambda row: row.name,
    "device": lambda row: row.device,
}


def _users(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The names that are the user's own, as they are at this moment."""
    return {
        name: value
        for name, value in list(namespace.items())
        if type(name) is str
        and name not in _IPYTHONS_WORDS
        and (name[:1] != "_" or _OF_IPYTHON.fullmatch(name) is None)
    }


def _is_on(device: str, wanted: str) -> bool:
    return any(one == wanted or one.partition(":")[0] == wanted for one in device.split(" + "))


def _chosen(
    everything: Sequence[Survey],
    own: Mapping[str, Any],
    names: Sequence[str],
    reader: FactReader,
    unsure: Sequence[str],
) -> list[Survey]:
    """What the names and patterns mean, in the order given, each once."""
    chosen: dict[str, Survey] = {}
    for name in names:
        matching = [found for found in everything if fnmatch.fnmatchcase(found.name, name)]
        if not matching:
            inner = _inside(own, name, reader)
            if inner is None:
                raise ValueError(_not_there(name, own, everything, unsure))
            matching = [inner]
        chosen.update((found.name, found) for found in matching)
    return list(chosen.values())


def _inside(own: Mapping[str, Any], path: str, reader: FactReader) -> Survey | None:
    """What ``model.fc.weight`` names, found among members; nothing is evaluated."""
    value = value_at(own, path)
    kind = placement.kind_of(value)
    return None if kind is None else survey(path, value, kind, reader)


def value_at(own: Mapping[str, Any], path: str) -> Any:
    """What ``model.fc.weight`` leads to, or None; found among members, nothing is evaluated."""
    root = re.match(r"\w+", path)
    if root is None or root.group() not in own:
        return None
    value, rest = own[root.group()], path[root.end() :].replace('"', "'")
    rest = re.sub(r"\.(\d+)(?![^.\[])", r"[\1]", rest)  # as keys of a state_dict have it
    while rest:
        steps = [member for member in placement.members(value) if rest.startswith(member.path)]
        if not steps:
            return None
        step = max(steps, key=lambda member: len(member.path))
        value, rest = step.value, rest[len(step.path) :]
    return value


def _not_all_seen(unsure: Sequence[str]) -> str:
    """Of names that are not listed, since no tensor was found, though they hold more than was looked at."""
    names = joined(unsure[:_MOST_NAMED])
    if len(unsure) > _MOST_NAMED:
        names = say("{names} and {count} more", names=names, count=f"{len(unsure) - _MOST_NAMED:,}")
    return say("no tensor was found in {names}, of which only a part was looked at", names=names)


def _not_there(name: str, own: Mapping[str, Any], everything: Sequence[Survey], unsure: Sequence[str]) -> str:
    if name in unsure:
        return _not_all_seen([name])
    if name in own:
        return say("{name} has no device: it is no tensor, module or optimizer and holds none", name=name)
    there = [found.name for found in everything]
    near = difflib.get_close_matches(name, there, n=1)
    told = say("no name {name} with a device in this workspace", name=repr(name))
    if any(_is_on(where, name) for found in everything for where in found.devices):
        return say("{error}; did you mean {near}?", error=told, near=f"%devices --device {name}")
    if near:
        return say("{error}; did you mean {near}?", error=told, near=near[0])
    if not there:
        return told
    names = joined(there[:_MOST_NAMED])
    if len(there) > _MOST_NAMED:
        names = say("{names} and {count} more", names=names, count=f"{len(there) - _MOST_NAMED:,}")
    return say("{error}; it has {names}", error=told, names=names)

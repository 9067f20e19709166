"""A namespace -> an `Inventory`: which names, in which order, with what between them."""

from __future__ import annotations

import difflib
import fnmatch
import gc
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ipydevice import placement
from ipydevice.diagnosis import Inventory, Row
from ipydevice.listing import odd, workspace
from ipydevice.listing.rows import quietly, row_of, surveys_of, torch_is_there
from ipydevice.listing.survey import Many, Survey, survey
from ipydevice.placement import FactReader

MOST_ROWS = 100_000
SORTS = ("bytes", "name", "device")

# What IPython keeps in the namespace for itself (IPython/core/interactiveshell.py, init_user_ns; history.py).
_OF_IPYTHON = re.compile(r"_|__|___|_i+|_i?\d+|_ih|_oh|_dh|In|Out|get_ipython|exit|quit|open|__\w+__|_exit_code")


def list_namespace(namespace: Mapping[str, Any], cells: Sequence[str] = ()) -> Inventory:
    """Everything with a device in a namespace, in the order in which the names were first bound."""
    return select(namespace, cells=cells)


def select(
    namespace: Mapping[str, Any],
    *,
    names: Sequence[str] | None = None,
    device: str | None = None,
    sort: str | None = None,
    verbose: bool = False,
    cells: Sequence[str] = (),
) -> Inventory:
    """What has a device in a namespace.

    Args:
        namespace: names and values, such as ``globals()``.
        names: names or patterns to list ("model", "opt*", "model.fc"); all by default.
        device: only what is on this device, wholly or in part; "cuda" means every card.
        sort: "bytes" (largest first), "name" or "device"; by default the order of the namespace.
        verbose: also a row for each tensor inside modules, optimizers and containers.
        cells: texts of the cells that ran, in order; they tell more of what is odd.

    Raises:
        ValueError: a name that is not there, or a sort that is not known.
    """
    if sort is not None and sort not in SORTS:
        raise ValueError(f"sort is one of {', '.join(SORTS)}, but got {sort!r}")
    if not torch_is_there():
        return Inventory()
    own = {name: value for name, value in _pairs(namespace) if not _OF_IPYTHON.fullmatch(name)}
    with quietly(), _no_collection():
        reader = FactReader()
        everything = list(surveys_of(own, reader))
        remarks = workspace.remarks(everything, cells, reader)
        shown = everything if not names else _chosen(everything, own, names, reader)
        name_of = workspace.ParameterNames(everything)
        rows: list[Row] = []
        memory: dict[Any, tuple[str, int]] = {}
        first: dict[Any, str] = {}
        for found in shown:
            if device is not None and not any(_is_on(one, device) for one in found.devices):
                continue
            note = _shared(found, first)
            memory.update(found.memory)
            said = "; ".join(filter(None, (odd.of_object(found, reader, name_of), remarks.get(found.name, ""))))
            rows.append(row_of(found, oddity=said, note=note))
            if verbose and isinstance(found, Many):
                rows += (row for row in _opened(found, reader, name_of) if device is None or _is_on(row.device, device))
    if sort is not None:
        rows.sort(key=_KEYS[sort])
    totals: Counter[str] = Counter()
    for where, size in memory.values():
        if device is None or _is_on(where, device):
            totals[where] += size
    return Inventory(tuple(rows[:MOST_ROWS]), dict(totals), max(0, len(rows) - MOST_ROWS))


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection while thousands of small records are made: it would take half of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_KEYS: dict[str, Any] = {
    "bytes": lambda row: -(row.bytes or 0),
    "name": lambda row: row.name,
    "device": lambda row: row.device,
}


def _pairs(namespace: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    pairs = list(dict.items(namespace)) if type(namespace) is dict else list(namespace.items())
    return [(name, value) for name, value in pairs if type(name) is str]


def _is_on(device: str, wanted: str) -> bool:
    return any(one == wanted or one.partition(":")[0] == wanted for one in device.split(" + "))


def _shared(found: Survey, first: dict[Any, str]) -> str:
    """With which earlier name a tensor shares its memory; the first of each memory is kept in `first`."""
    if isinstance(found, Many):
        return ""
    known = first.setdefault(found.identity, found.name)
    if known == found.name:
        return ""
    return f"shares storage with {known}"


def _opened(found: Many, reader: FactReader, name_of: workspace.ParameterNames) -> Iterable[Row]:
    """A row for each tensor inside."""
    for one in placement.walk(found.value, limit=MOST_ROWS, depth=64):
        kind = one.via if one.via in ("parameter", "buffer", "state") else placement.kind_of(one.value)
        facts = reader.facts(one.value)
        yield Row(
            found.name + one.path, kind or "tensor", facts.device, "", True, facts.shape, facts.dtype, facts.bytes,
            note=f"p is {name_of(one.key)}" if one.via == "state" and name_of(one.key) else "",
            requires_grad=facts.requires_grad,
        )  # fmt: skip


def _chosen(
    everything: Sequence[Survey], own: Mapping[str, Any], names: Sequence[str], reader: FactReader
) -> list[Survey]:
    """What the names and patterns mean, in the order given, each once."""
    chosen: dict[str, Survey] = {}
    for name in names:
        matching = [found for found in everything if fnmatch.fnmatchcase(found.name, name)]
        if not matching:
            inner = _inside(own, name, reader)
            if inner is None:
                raise ValueError(_not_there(name, own, everything))
            matching = [inner]
        chosen.update((found.name, found) for found in matching)
    return list(chosen.values())


def _inside(own: Mapping[str, Any], path: str, reader: FactReader) -> Survey | None:
    """What ``model.fc.weight`` names, found among members; nothing is evaluated."""
    root = re.match(r"\w+", path)
    if root is None or root.group() not in own:
        return None
    value, rest = own[root.group()], path[root.end() :].replace('"', "'")
    while rest:
        steps = [member for member in placement.members(value) if rest.startswith(member.path)]
        if not steps:
            return None
        step = max(steps, key=lambda member: len(member.path))
        value, rest = step.value, rest[len(step.path) :]
    kind = placement.kind_of(value)
    return None if kind is None else survey(path, value, kind, reader)


def _not_there(name: str, own: Mapping[str, Any], everything: Sequence[Survey]) -> str:
    if name in own:
        return f"{name} has no device: it is no tensor, module or optimizer and holds none"
    near = difflib.get_close_matches(name, [found.name for found in everything], n=1)
    return f"no name {name!r} with a device in this workspace" + (f"; did you mean {near[0]}?" if near else "")

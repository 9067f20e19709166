"""Applying a fix to the cells of a notebook: pure, and refused where the text is another by now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ipydevice.diagnosis import Fix

CellDict = dict[str, Any]


def apply(cells: Sequence[Mapping[str, Any]], fix: Fix | Mapping[str, Any]) -> tuple[list[CellDict], list[CellDict]]:
    """The notebook with the fix in it, and the cells to run then, in order.

    `cells` is the notebook's ordered list of ``{cell, cell_id, source}``; `cell` is None where
    it never ran.  A cell is found by its id, else by number and source.  ``setup`` becomes a new
    cell below the failed one, and the first to run.

    Raises ValueError where a cell that is to be edited is missing or its text is no longer what
    the fix was made for.
    """
    edits, rerun, setup = _read(fix)
    after = [dict(cell) for cell in cells]
    places: dict[int, str] = {}
    for edit in edits:
        index = _find(after, edit["cell"], edit["cell_id"], edit["before"], taken=set(places))
        if index is None:
            raise ValueError(
                f"fix for In [{edit['cell']}] not applied: no cell of the notebook has that id, or number and text, "
                "that the fix was made for"
            )
        if after[index]["source"] != edit["before"]:
            raise ValueError(
                f"fix for In [{edit['cell']}] not applied: its text has changed since it ran; "
                "expected the text as it ran, so run the cell and take the new diagnosis"
            )
        places[index] = edit["after"]
    old = [cell["source"] for cell in after]
    for index, text in places.items():
        after[index]["source"] = text
    runs: list[CellDict] = []
    for run in rerun:
        found = _find_run(after, old, run)
        runs.append(dict(after[found]) if found is not None else dict(run))
    if setup:
        new = {"cell": None, "cell_id": None, "source": setup}
        failed = _find_run(after, old, rerun[-1]) if rerun else None
        at = len(after) if failed is None else failed + 1
        after.insert(at, new)
        runs.insert(0, dict(new))
    return after, runs


def _read(fix: Fix | Mapping[str, Any]) -> tuple[list[CellDict], list[CellDict], str | None]:
    if isinstance(fix, Fix):
        edits = [
            {"cell": e.cell, "cell_id": e.cell_id, "before": e.before, "after": e.after}
            for e in fix.edits
            if not e.file
        ]
        rerun = [{"cell": r.cell, "cell_id": r.cell_id, "source": r.source} for r in fix.rerun]
        return edits, rerun, fix.setup
    edits = [dict(e) for e in fix.get("edits", ()) if not e.get("file")]
    return edits, [dict(r) for r in fix.get("rerun", ())], fix.get("setup")


def _find(cells: Sequence[Mapping[str, Any]], number: Any, cell_id: Any, source: str, taken: set[int]) -> int | None:
    if cell_id is not None:
        for index, cell in enumerate(cells):
            if cell.get("cell_id") == cell_id:
                return index
    matches = [i for i, cell in enumerate(cells) if cell["source"] == source and i not in taken]
    numbered = [i for i in matches if cells[i].get("cell") == number]
    if numbered:
        return numbered[0]
    changed = [i for i, cell in enumerate(cells) if number is not None and cell.get("cell") == number]
    return changed[0] if changed else None


def _find_run(after: Sequence[Mapping[str, Any]], old: Sequence[str], run: Mapping[str, Any]) -> int | None:
    if run.get("cell_id") is not None:
        for index, cell in enumerate(after):
            if cell.get("cell_id") == run["cell_id"]:
                return index
    for index, cell in enumerate(after):
        if (
            cell.get("cell") == run.get("cell")
            and run.get("cell") is not None
            and run["source"] in (cell["source"], old[index])
        ):
            return index
    return None

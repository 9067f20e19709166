"""The first fixes of several findings as one: all lines that they change, in one go."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ipydevice.diagnosis import Edit, Fix, Rerun
from ipydevice.language import say
from ipydevice.report import CheckFinding

MOST_TITLES = 3
MOST_NOTES = 3

Change = tuple[int, int, list[str]]  # lines from, to (exclusive), and what stands there afterwards


def all_at_once(findings: Iterable[CheckFinding]) -> Fix | None:
    """One fix that does what the first fitting fix of each finding does; None for fewer than two."""
    texts: dict[Any, Edit] = {}
    changes: dict[Any, list[Change]] = {}
    reruns: dict[Any, Rerun] = {}
    taken: list[Fix] = []
    total = covered = 0
    for finding in findings:
        total += 1
        for fix in finding.diagnosis.fixes:
            if fix.kind == "edit" and fix.setup is None and fix.edits:
                before = sum(map(len, changes.values()))
                if _fits(fix, texts, changes):
                    covered += 1
                    if sum(map(len, changes.values())) > before:  # another may change the same lines already
                        taken.append(fix)
                    reruns.update({_cell(again): again for again in fix.rerun})
                    break
    if len(taken) < 2:
        return None
    edits = tuple(replace(edit, after=_apply(edit.before, changes[key])) for key, edit in texts.items())
    after = {_cell(edit): edit.after for edit in edits}
    ordered = sorted(reruns.values(), key=lambda again: again.cell if again.cell is not None else 0)
    notes = dict.fromkeys(fix.note for fix in taken if fix.note)
    missing = total - covered
    if missing:
        notes[say("{missing} of {total} need a fix of their own", missing=missing, total=total)] = None
    return Fix(
        title=_title([fix.title for fix in taken]),
        kind="edit",
        edits=edits,
        rerun=tuple(replace(again, source=after.get(_cell(again), again.source)) for again in ordered),
        note=say("; ").join(list(notes)[-MOST_NOTES:]),
        checked=all(fix.checked for fix in taken),
    )


def _title(titles: list[str]) -> str:
    told = say("; ").join(titles[:MOST_TITLES])
    if len(titles) > MOST_TITLES:
        told = say("{titles}; and {count} more", titles=told, count=len(titles) - MOST_TITLES)
    return say("all at once: {titles}", titles=told)


def _cell(thing: Edit | Rerun) -> Any:
    return thing.cell_id if thing.cell_id is not None else (thing.cell, getattr(thing, "file", None))


def _fits(fix: Fix, texts: dict[Any, Edit], changes: dict[Any, list[Change]]) -> bool:
    """Take the fix in, unless it changes lines that another one changes differently."""
    wanted: dict[Any, list[Change]] = {}
    for edit in fix.edits:
        key = _cell(edit)
        if key in texts and texts[key].before != edit.before:
            return False
        new = [change for change in _changes(edit) if change not in changes.get(key, [])]
        if any(_overlap(change, other) for change in new for other in changes.get(key, [])):
            return False
        wanted[key] = new
    for edit in fix.edits:
        texts.setdefault(_cell(edit), edit)
        changes.setdefault(_cell(edit), []).extend(wanted[_cell(edit)])
    return True


def _changes(edit: Edit) -> list[Change]:
    before, after = edit.before.splitlines(keepends=True), edit.after.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return [(i, j, after[k:m]) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]


def _overlap(one: Change, other: Change) -> bool:
    if one[0] == one[1] or other[0] == other[1]:  # lines put between others
        return one[0] < other[0] < one[1] or other[0] < one[0] < other[1]
    return one[0] < other[1] and other[0] < one[1]


def _apply(text: str, changes: list[Change]) -> str:
    lines = text.splitlines(keepends=True)
    # From the bottom up, so that line numbers stay right; of two at one place the first taken stays first.
    for _, (start, end, new) in sorted(enumerate(changes), key=lambda item: (-item[1][0], -item[0])):
        if new and not new[-1].endswith("\n") and end < len(lines):
            new = [*new[:-1], new[-1] + "\n"]
        if start == len(lines) and lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        lines[start:end] = new
    return "".join(lines)

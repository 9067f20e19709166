"""What a fix looks like as new cells: for the "insert" button and for `%devicefix N`."""

from __future__ import annotations

import re

from ipydevice.diagnosis import Edit, Fix, Rerun

# A cell magic has to stay the first line of its cell; comments may follow it.
_CELL_MAGIC = re.compile(r"(?:\s*\n)*%%[^\n]*\n?")
_HEAD = re.compile(r"(?:# (?:replaces (?:In \[\d+\]|the cell)|run this)(?:; then run [^\n]*)?\n)+")


def cells_of(fix: Fix, number: int) -> tuple[str, ...]:
    """Texts of the cells to insert below the failed one, each headed by what it stands for.

    An edited cell is headed ``# replaces In [2]; then run In [3], In [7]``.  A patch of files
    can only be written by the kernel, so its cell is ``%devicefix N --apply``.
    """
    if fix.kind == "patch":
        return (f"%devicefix {number} --apply",)
    pieces: list[tuple[str, str]] = [(f"replaces {_name(edit)}", edit.after) for edit in fix.edits]
    if fix.setup:
        pieces.append(("run this", fix.setup))
    if not pieces:
        return ("# nothing to change" + _then(fix),)
    texts = [headed(text, f"# {head}") for head, text in pieces[:-1]]
    head, text = pieces[-1]
    return (*texts, headed(text, f"# {head}{_then(fix)}"))


def headed(text: str, line: str) -> str:
    """`text` with `line` on top, or below its ``%%`` line where it has one."""
    magic = _CELL_MAGIC.match(text)
    if magic is None:
        return f"{line}\n{_bare(text)}"
    top = magic.group().rstrip("\n")
    return f"{top}\n{line}\n{_bare(text[magic.end() :])}"


def _bare(text: str) -> str:
    """Without the heads that an earlier fix has put there: the cell is an inserted one itself."""
    head = _HEAD.match(text)
    return text if head is None else text[head.end() :]


def _then(fix: Fix) -> str:
    """The inserted cell stands for the edited ones, so only the others are left to run."""
    edited = {(edit.cell, edit.cell_id) for edit in fix.edits}
    rest = [_name(again) for again in fix.rerun if (again.cell, again.cell_id) not in edited]
    return f"; then run {', '.join(rest)}" if rest else ""


def _name(place: Edit | Rerun) -> str:
    return "the cell" if place.cell is None else f"In [{place.cell}]"

"""What a fix looks like as new cells: for the "insert" button and for `%devicefix N`."""

from __future__ import annotations

import re

from ipydevice.diagnosis import Edit, Fix, Rerun

# A cell magic has to stay the first line of its cell; comments may follow it.
_CELL_MAGIC = re.compile(r"(?:\s*\n)*%%[^\n]*\n?")
_HEAD = re.compile(r"(?:# (?:replaces (?:In \[\d+\]|the cell)|run this)(?:; (?:first|then) run [^\n]*)?\n)+")


def cells_of(fix: Fix, number: int) -> tuple[str, ...]:
    """Texts of the cells to insert below the failed one, each headed by what it stands for.

    An edited cell is headed ``# replaces In [2]; then run In [3], In [7]``, or ``# replaces In [7]; first run In [3]``
    where what it needs is made by a cell between.  A patch of files can only be written by the kernel, so its cell is
    ``%devicefix N --apply``.
    """
    if fix.kind == "patch":
        return (f"%devicefix {number} --apply",)
    others = _others(fix)
    pieces = [
        (f"replaces {_name(edit)}{_told('first', before)}", edit.after)
        for edit, before in zip(fix.edits, others, strict=False)
    ]
    if fix.setup:
        pieces.append(("run this", fix.setup))
    if not pieces:
        return ("# nothing to change" + _told("then", others[-1]),)
    head, text = pieces[-1]
    pieces[-1] = (head + _told("then", others[-1]), text)
    return tuple(headed(text, f"# {head}") for head, text in pieces)


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


def _others(fix: Fix) -> list[list[str]]:
    """The cells that are left to run: before each edited one, which an inserted cell stands for, and after the last."""
    order = [(again.cell, again.cell_id) for again in fix.rerun]
    edited = [(edit.cell, edit.cell_id) for edit in fix.edits]
    # New objects come from `setup`, whose cell is inserted after the edited ones: nothing runs before it.
    ends = [0 if fix.setup or cell not in order else order.index(cell) for cell in edited]
    found, start = [], 0
    for end in [*ends, len(order)]:
        found.append(
            [
                _name(again)
                for again, cell in zip(fix.rerun[start:end], order[start:end], strict=True)
                if cell not in edited
            ]
        )
        start = max(start, end)
    return found


def _told(when: str, cells: list[str]) -> str:
    return f"; {when} run {', '.join(cells)}" if cells else ""


def _name(place: Edit | Rerun) -> str:
    return "the cell" if place.cell is None else f"In [{place.cell}]"

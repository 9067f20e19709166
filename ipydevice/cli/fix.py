"""Put fixes for a notebook's device errors into its cells: those that the errors stored in its outputs lead to where
the text leaves no doubt about them, those for what would fail behind these errors by what the cells show, and what
`lint` finds. Nothing is run: run the notebook afterwards, since an error may have kept others from being seen.

Every byte outside the edited cells' sources stays as it is. Without -o, --in-place or --diff the edited notebook is
written to standard output. Exit code 0 when each stored error was fixed or nothing is to fix, 1 when one remains for
which there is no safe fix, or whose cells have changed so that only another run tells, 2 for input that is no notebook.

Examples:
  ipydevice fix analysis.ipynb --diff
  ipydevice fix analysis.ipynb --in-place
  ipydevice fix analysis.ipynb -o fixed.ipynb
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ipydevice import fixes, lint, notebook_files, postmortem
from ipydevice.cli import current, inputs
from ipydevice.diagnosis import Diagnosis, Fix
from ipydevice.input_error import InputError
from ipydevice.lint import Settings
from ipydevice.notebook_files import NotebookFile
from ipydevice.text_traceback import PastedError

_ROUNDS = 12  # of looking for what would fail next


@dataclass
class Fixed:
    """A notebook with what could be fixed in it."""

    book: NotebookFile
    done: list[str] = field(default_factory=list)  # what was done, in words
    left: list[str] = field(default_factory=list)  # device errors that are not, and why
    unseen: bool = False  # errors have ended cells, so that nobody knows what the rest of them does


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("notebook", metavar="NOTEBOOK.ipynb")
    to = parser.add_mutually_exclusive_group()
    to.add_argument("-o", "--output", metavar="OUT", help="write the fixed notebook there")
    to.add_argument("--in-place", action="store_true", help="write it back, and what it was to NOTEBOOK.ipynb.bak")
    to.add_argument("--diff", action="store_true", help="show what would change, cell by cell; write nothing")
    parser.add_argument(
        "--guesses", action="store_true", help="take the first fix of an error also where it is a guess"
    )


def run(given: argparse.Namespace) -> int:
    path = Path(given.notebook)
    raw = inputs.read_bytes(path)
    bom = b"\xef\xbb\xbf" if raw.startswith(b"\xef\xbb\xbf") else b""
    text = inputs.decoded_notebook(raw, str(path))
    if not text.strip():
        raise InputError(f"{path} is empty; {inputs.NOTEBOOK} is read")
    before = NotebookFile.read(text, str(path))
    if before.language not in ("python", "ipython", "python3"):
        raise InputError(f"{path} is a notebook of {before.language}; only Python's are fixed")
    fixed = fix(before, guesses=given.guesses)
    for line in (*fixed.done, *fixed.left):
        print(line, file=sys.stderr)
    if not fixed.done and not fixed.left:
        print(f"nothing to fix in {path}", file=sys.stderr)
    content = bom + fixed.book.text.encode()
    if given.diff:
        sys.stdout.writelines(diff(before, fixed.book))
    elif given.in_place:
        if fixed.done:
            backup = path.with_name(path.name + ".bak")
            _write(backup, raw)
            _write(path, content)
            print(f"{path} is fixed; what it was is in {backup}", file=sys.stderr)
    elif given.output:
        _write(Path(given.output), content)
    else:
        sys.stdout.buffer.write(content)
    if fixed.unseen:
        print("run the notebook again: what an error kept from running may hold others", file=sys.stderr)
    return int(bool(fixed.left))


def fix(book: NotebookFile, *, guesses: bool = False) -> Fixed:
    """The notebook with the safe fixes in it: for the errors stored, then for what would fail behind them."""
    fixed = Fixed(book)
    stored = list(book.failures())
    for number, (error, then) in enumerate(stored):
        diagnosis = postmortem.explain_printed(error, then)
        if diagnosis is not None:
            fixed.unseen = True
            _mend(fixed, diagnosis, error, number, book, guesses=guesses)
    for error, _ in stored if fixed.done else ():
        _go_on(fixed, error, book)
    checked = lint.fixed(fixed.book.text, book.name, Settings())
    if checked.text is not None:
        fixed.book = NotebookFile.read(checked.text, book.name)
        fixed.done.append(f"{checked.fixed} {'problem' if checked.fixed == 1 else 'problems'} found by lint fixed")
    return fixed


def _mend(
    fixed: Fixed, diagnosis: Diagnosis, error: PastedError, number: int, book: NotebookFile, *, guesses: bool
) -> None:
    """Fix one stored error in the cells as they are by now: those before it may have been fixed with the same edit."""
    now = current.placed(error, book, fixed.book)
    if now is None:
        fixed.left.append(f"{_where(diagnosis)}: its lines have changed since it ran; only another run tells more")
        return
    history = list(fixed.book.failures())[number][1]
    if fixed.book is not book and postmortem.is_mended(now, history):
        return  # by the edit of another error
    diagnosis = postmortem.explain_printed(now, history) or diagnosis
    if _choices(diagnosis, guesses=guesses) or not postmortem.is_mended(now, history):
        _take(fixed, diagnosis, guesses=guesses)
    else:  # edited since it ran, or not understood
        fixed.left.append(f"{_where(diagnosis)}: by its cells nothing is apart any more; only another run tells more")


def _take(fixed: Fixed, diagnosis: Diagnosis, *, guesses: bool) -> None:
    for chosen in _choices(diagnosis, guesses=guesses):
        changed = _applied(fixed.book, chosen)
        if changed is not None:
            fixed.book = changed
            fixed.done.append(f"{_where(diagnosis)}: {chosen.title}")
            return
    fixed.left.append(_unfixed(diagnosis))


def _go_on(fixed: Fixed, error: PastedError, book: NotebookFile) -> None:
    """What a mended error kept from running, fixed too where the cells alone show that it would fail."""
    for _ in range(_ROUNDS):
        now = current.placed(error, book, fixed.book)
        for diagnosis in postmortem.foreseen(now, current.as_if_run(fixed.book)) if now is not None else ():
            chosen = next(iter(_choices(diagnosis, guesses=False)), None)
            changed = _applied(fixed.book, chosen) if chosen is not None else None
            if chosen is not None and changed is not None:
                fixed.book = changed
                fixed.done.append(f"{_where(diagnosis)} too, by what the cells show: {chosen.title}")
                break
        else:
            return


def _choices(diagnosis: Diagnosis, *, guesses: bool) -> list[Fix]:
    return [one for one in diagnosis.fixes if _is_safe(diagnosis, one, guesses=guesses)]


def _is_safe(diagnosis: Diagnosis, fix: Fix, *, guesses: bool) -> bool:
    """Edits of cells alone, of a diagnosis whose devices all follow from the code."""
    if fix.kind != "edit" or not fix.edits or any(edit.file for edit in fix.edits):
        return False
    return diagnosis.confidence in ("certain", "likely") or guesses


def _applied(book: NotebookFile, chosen: Fix) -> NotebookFile | None:
    """The notebook with a fix's edits in it; None where a cell is no longer the one that the fix is for."""
    given = current.numbers(book)
    cells = [{"cell": given[cell.position], "cell_id": cell.cell_id, "source": cell.source} for cell in book.cells]
    try:
        after, _ = fixes.apply(cells, chosen)
    except ValueError:
        return None
    sources = {
        cell.position: str(new["source"])
        for cell, new in zip(book.cells, after, strict=True)
        if new["source"] != cell.source
    }
    return book.with_sources(sources) if sources else None


def diff(before: NotebookFile, after: NotebookFile) -> Iterator[str]:
    """The changed cells as a unified diff."""
    for old, new in zip(before.cells, after.cells, strict=True):
        if old.source == new.source:
            continue
        cell = f"cell {old.position + 1}" + (f", In [{old.number}]" if old.number is not None else "")
        lines = difflib.unified_diff(
            old.source.splitlines(),
            new.source.splitlines(),
            f"{before.name} ({cell})",
            f"{after.name} ({cell})",
            lineterm="",
        )
        yield from (f"{line}\n" for line in lines)


def _where(diagnosis: Diagnosis) -> str:
    return f"{diagnosis.failed}, {diagnosis.headline}"


def _unfixed(diagnosis: Diagnosis) -> str:
    tried = "only guesses, --guesses takes the first" if diagnosis.fixes else "no safe fix"
    return f"{_where(diagnosis)}: {tried}; `ipydevice explain` shows more"


def _write(path: Path, content: bytes) -> None:
    try:
        notebook_files.write(path, content)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror or error}); nothing was changed") from None

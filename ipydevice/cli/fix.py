"""Put the fixes for a notebook's device errors into its cells: those found by `lint`, and those that the errors stored
in its outputs lead to where the text leaves no doubt about them. Nothing is run; run the notebook afterwards.

Every byte outside the edited cells' sources stays as it is. Without -o, --in-place or --diff the edited notebook is
written to standard output. Exit code 0 when something was fixed or nothing is to fix, 1 when a device error remains for
which there is no safe fix, 2 for input that is no notebook.

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
from ipydevice.cli import inputs
from ipydevice.diagnosis import Diagnosis, Fix
from ipydevice.input_error import InputError
from ipydevice.lint import Settings
from ipydevice.notebook_files import NotebookFile


@dataclass
class Fixed:
    """A notebook with what could be fixed in it."""

    book: NotebookFile
    done: list[str] = field(default_factory=list)  # what was done, in words
    left: list[Diagnosis] = field(default_factory=list)  # device errors without a safe fix


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
    for line in (*fixed.done, *map(_unfixed, fixed.left)):
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
    return int(bool(fixed.left))


def fix(book: NotebookFile, *, guesses: bool = False) -> Fixed:
    """The notebook with the safe fixes in it. An error is fixed first, so that its edit meets the text that ran."""
    fixed = Fixed(book)
    for diagnosis in _diagnoses(book):
        chosen = next((one for one in diagnosis.fixes if _is_safe(diagnosis, one, guesses=guesses)), None)
        if chosen is None:
            fixed.left.append(diagnosis)
            continue
        changed = _applied(fixed.book, chosen)
        if changed is None:
            continue  # an error before it had the same edit
        fixed.book = changed
        fixed.done.append(f"{_where(diagnosis)}: {chosen.title}")
    checked = lint.fixed(fixed.book.text, book.name, Settings())
    if checked.text is not None:
        fixed.book = NotebookFile.read(checked.text, book.name)
        fixed.done.append(f"{checked.fixed} {'problem' if checked.fixed == 1 else 'problems'} found by lint fixed")
    return fixed


def _diagnoses(book: NotebookFile) -> Iterator[Diagnosis]:
    for error, history in book.failures():
        diagnosis = postmortem.explain_printed(error, history)
        if diagnosis is not None:
            yield diagnosis


def _is_safe(diagnosis: Diagnosis, fix: Fix, *, guesses: bool) -> bool:
    """Edits of cells alone, of a diagnosis whose devices all follow from the code."""
    if fix.kind != "edit" or not fix.edits or any(edit.file for edit in fix.edits):
        return False
    return diagnosis.confidence in ("certain", "likely") or guesses


def _applied(book: NotebookFile, chosen: Fix) -> NotebookFile | None:
    """The notebook with a fix's edits in it; None where a cell is no longer the one that the fix is for."""
    cells = [{"cell": cell.number, "cell_id": cell.cell_id, "source": cell.source} for cell in book.cells]
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

"""Notebook files: their cells, the errors stored in them, and edits that leave every other byte as it was.

A notebook is a JSON file that other tools have formatted in their own ways, so an edit replaces
the characters of one cell's source and nothing else; nbformat judges the file before and after.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ipydevice import text_traceback
from ipydevice.cells import Cell, CellHistory
from ipydevice.input_error import InputError
from ipydevice.text_traceback import PastedError

LONGEST_REASON = 200  # characters of what nbformat says


@dataclass(frozen=True, slots=True)
class FileCell:
    """One code cell of a file."""

    position: int  # among all cells of the file, from 0
    number: int | None  # n of In [n]; None where it never ran
    cell_id: str | None
    source: str
    outputs: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class NotebookFile:
    """A notebook as text, with its code cells."""

    name: str
    text: str
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def read(cls, text: str, name: str) -> NotebookFile:
        """Raises InputError where the text is no valid notebook."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name} is no notebook: its JSON is broken ({error})") from None
        if not isinstance(data, dict) or not ("cells" in data or "worksheets" in data):
            raise InputError(f"{name} is no notebook: it has no cells")
        book = cls(name, text, data)
        book.check()
        return book

    def check(self) -> None:
        """Raises InputError where nbformat finds the notebook invalid."""
        import nbformat

        version = self.data.get("nbformat")
        if version not in (3, 4):
            said = "does not say its notebook format" if version is None else f"has notebook format {version}"
            raise InputError(f"{self.name} {said}; formats 3 and 4 are read")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ids that are missing are added to a copy only, and said by its own tools
            try:
                nbformat.validate(nbformat.from_dict(self.data), version=version)
            except nbformat.ValidationError as error:
                # Its own text of a thing that is wrong may be the whole cell.
                reason, at = str(error).splitlines()[0], "/".join(map(str, getattr(error, "absolute_path", ())))
                said = reason if len(reason) < LONGEST_REASON else f"{reason[:LONGEST_REASON]}…"
                raise InputError(f"{self.name} is no valid notebook: {said}{f' ({at})' if at else ''}") from None
            except Exception as error:  # noqa: BLE001  # a cell that is no cell: nbformat fails in its own ways
                raise InputError(f"{self.name} is no valid notebook ({type(error).__name__}: {error})") from None

    @property
    def language(self) -> str:
        """The kernel's language, "python" where the file does not say."""
        metadata = self.data.get("metadata", {})
        named = metadata.get("kernelspec", {}).get("language") or metadata.get("language_info", {}).get("name")
        return str(named or "python").lower()

    @cached_property
    def cells(self) -> list[FileCell]:
        """The code cells, from the top."""
        return [
            FileCell(
                position,
                raw.get("execution_count", raw.get("prompt_number")),
                raw.get("id"),
                _joined(raw.get("source", raw.get("input", ""))),
                tuple(raw.get("outputs", ())),
            )
            for position, raw in enumerate(self._raw_cells())
            if raw.get("cell_type") == "code"
        ]

    def _raw_cells(self) -> Iterator[dict[str, Any]]:
        if "cells" in self.data:
            yield from self.data["cells"]
        for sheet in self.data.get("worksheets", ()):
            yield from sheet.get("cells", ())

    def history(self) -> CellHistory:
        """The cells in the order in which they ran; those that never ran are left out."""
        ran = [cell for cell in self.cells if cell.number is not None and cell.source.strip()]
        ran.sort(key=lambda cell: cell.number or 0)
        failed = {cell.position for cell in ran if any(_is_error(output) for output in cell.outputs)}
        return CellHistory(
            [Cell(cell.number or 0, cell.source, cell.cell_id, success=cell.position not in failed) for cell in ran],
            transform=transform(),
        )

    def failures(self) -> Iterator[tuple[PastedError, CellHistory]]:
        """The errors stored in the outputs, those in plain text outputs (logs, `!python train.py`) too.

        Each with the cells that had run by then: what ran later may define the same names anew.
        """
        history = self.history()
        for cell in self.cells:
            by_then = [ran for ran in history.cells if cell.number is None or ran.number <= cell.number]
            for output in cell.outputs:
                errors: list[PastedError] = []
                if _is_error(output):
                    errors = [_stored(output)]
                elif output.get("output_type") == "stream":
                    errors = [error for error in text_traceback.read(_joined(output.get("text", ""))) if error.frames]
                for error in errors:
                    yield error, CellHistory(by_then, history.transform)

    def with_sources(self, sources: Mapping[int, str]) -> NotebookFile:
        """The notebook with new sources for the cells at these positions, every other byte as it was.

        Raises InputError where the result would not be a valid notebook.
        """
        spans = list(_source_spans(self.text))
        text = self.text
        for position in sorted(sources, reverse=True):
            start, end = spans[position]
            text = text[:start] + _written(sources[position], text[start:end], self.text) + text[end:]
        return NotebookFile.read(text, self.name)


def is_notebook(text: str, name: str) -> bool:
    """By its name, or by what it begins with."""
    return name.endswith(".ipynb") or (text.lstrip().startswith("{") and '"cells"' in text and '"nbformat"' in text)


def transform() -> Callable[[str], str] | None:
    """What makes Python of a cell's text, where IPython is installed."""
    try:
        from IPython.core.inputtransformer2 import TransformerManager
    except ImportError:
        return None
    make: Callable[[str], str] = TransformerManager().transform_cell
    return make


def write(path: Path, content: bytes) -> None:
    """Put `content` into a file so that at each moment the old or the new one is there, whole.

    Raises OSError where the folder or the disk does not let it.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, target.stat().st_mode & 0o7777)
        os.replace(temporary, target)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _joined(source: Any) -> str:
    return "".join(source) if isinstance(source, list) else str(source)


def _is_error(output: Mapping[str, Any]) -> bool:
    return output.get("output_type") in ("error", "pyerr")


def _stored(output: Mapping[str, Any]) -> PastedError:
    """An error output: its name and message are stored by themselves, the frames are read from the traceback."""
    printed = text_traceback.read("\n".join(output.get("traceback", ())))
    name, message = str(output.get("ename", "")), text_traceback.plain_text(str(output.get("evalue", "")))
    if not printed:
        return PastedError(name, message)
    last = printed[-1]
    return PastedError(last.type if last.type.endswith(name) else name, message, last.frames, last.before, last.caused)


# Places in the JSON text -----------------------------------------------------------------------

_SPACE = re.compile(r"[ \t\r\n]*")
_decode = json.JSONDecoder().raw_decode


def _source_spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of the source's value, for each cell in the order of the file."""
    for key, start, _ in _members(text, _skip(text, 0)):
        if key == "cells":
            for cell, _ in _items(text, start):
                yield _source_span(text, cell)
        elif key == "worksheets":
            for sheet, _ in _items(text, start):
                for name, inner, _ in _members(text, sheet):
                    if name == "cells":
                        for cell, _ in _items(text, inner):
                            yield _source_span(text, cell)


def _source_span(text: str, cell: int) -> tuple[int, int]:
    found = (cell, cell)
    for key, start, end in _members(text, cell):
        if key in ("source", "input"):
            found = start, end
    return found


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Key, start and end of each value of the object that begins at `at`."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _decode(text, start)
        yield key, start, end
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _items(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Start and end of each item of the array that begins at `at`."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = _decode(text, at)
        yield at, end
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _written(source: str, before: str, whole: str) -> str:
    """`source` as JSON in the way in which `before` is written: one string, or a list of lines."""
    plain = not whole.isascii() or re.search(r"\\u[0-9a-fA-F]{4}", whole) is None
    if not before.startswith("["):
        return json.dumps(source, ensure_ascii=not plain)
    lines = [json.dumps(line, ensure_ascii=not plain) for line in source.splitlines(keepends=True)]
    spread = re.match(r"\[(\s*\n\s*)\"", before)
    if spread is not None or "\n" in before:
        lead = spread[1] if spread is not None else "\n"
        close = re.search(r"(\s*)\]$", before)
        return "[" + ",".join(lead + line for line in lines) + (close[1] if close else "\n") + "]"
    if not lines:
        return "[]"
    if before == "[]":
        return "[" + ", ".join(lines) + "]"
    between = re.search(r"\"(\s*,\s*)\"", before)
    return "[" + (between[1] if between else ", ").join(lines) + "]"

"""One text of the user's, a cell or a file, with its syntax tree.

A cell has two texts: what the user wrote and what IPython made of it (``%timeit f()``
becomes a call).  Trees and positions are of the second, edits are made in the first;
`Source` knows how their lines correspond.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from ipydevice.cells import Cell, CellHistory

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Answer = TypeVar("Answer")
Span = tuple[int, int, int, int]  # line, end line, columns in UTF-8 bytes


def span_of(node: ast.expr | ast.stmt) -> Span:
    """The node's place in the text."""
    return node.lineno, node.end_lineno or node.lineno, node.col_offset, node.end_col_offset or node.col_offset


def once_a_node(answer: Callable[[ast.AST], Answer]) -> Callable[[ast.AST], Answer]:
    """The answer is asked for again and again, and holds as long as the node lives.

    It is kept weakly, so it must not hold the node itself; it may hold what is below. Nobody may change it.
    """
    kept: WeakKeyDictionary[ast.AST, Answer] = WeakKeyDictionary()

    @wraps(answer)
    def asked(node: ast.AST) -> Answer:
        found = kept.get(node)
        if found is None:
            found = kept[node] = answer(node)
        return found

    return asked


_alive: WeakValueDictionary[int, Source] = WeakValueDictionary()  # by id of the cell, which each of them holds


def of_cell(history: CellHistory, cell: Cell) -> Source:
    """The text of a cell; the one that somebody has already, so that a check with many mistakes parses it once."""
    found = _alive.get(id(cell))
    if found is None:
        text, shift = history.python(cell)
        found = _alive[id(cell)] = Source(text, cell.raw, cell=cell, shift=shift)
    return found


class Source:
    """A text with its tree; columns are in characters, lines are 1-based in `text`."""

    def __init__(
        self, text: str, raw: str | None = None, *, cell: Cell | None = None, file: str | None = None, shift: int = 0
    ) -> None:
        self.text = text
        self.raw = text if raw is None else raw
        self.cell = cell
        self.file = file
        self.shift = shift  # lines of `raw` above line 1 of `text`: 1 below a %%time line

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def raw_lines(self) -> list[str]:
        return self.raw.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        """The tree, or an empty one where the text does not parse."""
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError):
            return ast.Module(body=[], type_ignores=[])

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree, in the order of `ast.walk`."""
        return list(ast.walk(self.tree))

    @cached_property
    def placed(self) -> list[ast.expr | ast.stmt]:
        """Every node that has a place in the text, in the order of `ast.walk`."""
        return [node for node in self.nodes if isinstance(node, (ast.expr, ast.stmt))]

    @cached_property
    def by_span(self) -> dict[Span, ast.expr | ast.stmt]:
        """By its place; of a statement that is one expression, as `f(x)` may be, the expression."""
        found: dict[Span, ast.expr | ast.stmt] = {}
        for node in self.placed:
            span = span_of(node)
            if span not in found or (isinstance(node, ast.expr) and isinstance(found[span], ast.stmt)):
                found[span] = node
        return found

    @cached_property
    def guards(self) -> list[ast.Try | ast.TryStar | ast.With | ast.AsyncWith]:
        """The statements that may take an error."""
        return [node for node in self.placed if isinstance(node, (ast.Try, ast.TryStar, ast.With, ast.AsyncWith))]

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Parents of `node`, the nearest first."""
        up = self.parent(node)
        while up is not None:
            yield up
            up = self.parent(up)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that `node` is or belongs to."""
        for item in (node, *self.ancestors(node)):
            if isinstance(item, ast.stmt):
                return item
        return None

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function or lambda around `node`."""
        for item in self.ancestors(node):
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return item
        return None

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around `node`."""
        for item in self.ancestors(node):
            if isinstance(item, ast.ClassDef):
                return item
        return None

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
        """By name the first function or method of that name; of a class its own ``__init__``."""
        found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef):
                made = next((m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
                if made is not None:
                    found.setdefault(node.name, made)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.setdefault(node.name, node)
        return found

    def segment(self, node: ast.AST) -> str:
        """The node as the user wrote it, several lines joined by one blank."""
        text = self._between(node)
        if text is None:
            text = ast.unparse(node)
        return " ".join(line.strip() for line in text.splitlines())

    @cached_property
    def _encoded_lines(self) -> list[bytes]:
        """Lines as the parser counts them, a form feed being none, in the bytes that its columns count."""
        return [line.encode() for line in self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]

    def _between(self, node: ast.AST) -> str | None:
        """As ast.get_source_segment, which splits the whole text anew for each node."""
        first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        if first is None or last is None or not 0 < first <= last <= len(self._encoded_lines):
            return None
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None)
        lines = self._encoded_lines[first - 1 : last]
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][start:]
        return b"\n".join(lines).decode(errors="replace")

    def column(self, line: int, utf8_offset: int) -> int:
        """The character column for one of ast's offsets, which count UTF-8 bytes."""
        if not 0 < line <= len(self.lines):
            return utf8_offset
        return len(self.lines[line - 1].encode()[:utf8_offset].decode(errors="ignore"))

    def raw_line(self, line: int) -> int:
        """The line of `raw` on which line `line` of `text` stands."""
        return line + self.shift

    def line_text(self, line: int) -> str:
        """The line as the user wrote it, stripped."""
        number = self.raw_line(line)
        return self.raw_lines[number - 1].strip() if 0 < number <= len(self.raw_lines) else ""

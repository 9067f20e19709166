"""A second tree of a text, changed as the text is: what the new text has to parse to."""

from __future__ import annotations

import ast
import contextlib
import itertools

from ipydevice.diagnose.source import Source
from ipydevice.fixes.texts import ImpossibleError


class Twin:
    """A copy of a tree in which the original's nodes can be found and exchanged."""

    def __init__(self, source: Source) -> None:
        # Parsed again, not deep-copied: all trees share one ast.Load, on which executing (behind IPython's
        # tracebacks) sets `parent`, and a deep copy would follow it through the sources of half of torch.
        self._source = source
        self.root = ast.parse(source.text)
        self._twins: dict[ast.AST, ast.AST] = {source.tree: self.root}

    def know(self, nodes: list[ast.AST]) -> None:
        """Find the twins of these nodes, while the copy still has the original's shape."""
        for node in nodes:
            self._know(node)

    def _know(self, node: ast.AST) -> ast.AST:
        twin = self._twins.get(node)
        if twin is None:
            parent = self._source.parent(node)
            if parent is None:
                raise ImpossibleError
            name, index = _field_of(parent, node)
            held = getattr(self._know(parent), name)
            twin = self._twins[node] = held if index is None else held[index]
        return twin

    def of(self, node: ast.AST) -> ast.AST:
        return self._twins[node]

    def swap(self, node: ast.AST, new: ast.AST) -> None:
        # `new` may hold the old node already; look for its holder outside of it.
        inside = set(map(id, ast.walk(new)))
        old, parent = self.of(node), self._source.parent(node)
        near = [self._twins[parent]] if parent is not None else []
        for holder in itertools.chain(near, ast.walk(self.root)):
            if id(holder) in inside and holder is not self.root:
                continue
            with contextlib.suppress(ImpossibleError):
                name, index = _field_of(holder, old)
                if index is None:
                    setattr(holder, name, new)
                else:
                    getattr(holder, name)[index] = new
                return
        raise ImpossibleError

    def block(self, statement: ast.stmt) -> tuple[list[ast.stmt], int]:
        parent = self._source.parent(statement)
        if parent is None:
            raise ImpossibleError
        # What holds statements is a statement itself, or one of its parts, and these are never exchanged.
        holder = self._twins[parent]
        name, index = _field_of(holder, self.of(statement))
        if index is None:
            raise ImpossibleError
        body: list[ast.stmt] = getattr(holder, name)
        return body, index


def _field_of(holder: ast.AST, node: ast.AST) -> tuple[str, int | None]:
    """The field of `holder` that has this very node, and where in it if it is a list."""
    for name, value in ast.iter_fields(holder):
        if value is node:
            return name, None
        if isinstance(value, list):
            for index, item in enumerate(value):
                if item is node:
                    return name, index
    raise ImpossibleError

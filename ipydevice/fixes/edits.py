"""Small changes of the user's text at the places of its syntax nodes.

Every change is made twice: to the characters the user wrote and to a copy of the syntax
tree.  A draft is handed out only when the new text parses to exactly the new tree, so
nothing but the intended change can happen, whatever the formatting.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ipydevice.diagnose.source import Source
from ipydevice.diagnosis import Edit
from ipydevice.fixes.names import same
from ipydevice.fixes.places import Places
from ipydevice.fixes.texts import (
    Alignment,
    ImpossibleError,
    NewLines,
    Span,
    apply_changes,
    newline_of,
    split_lines,
)
from ipydevice.fixes.twin import Twin

# What may be followed by ".to(...)" without parentheses of its own.
_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.ListComp, ast.Dict, ast.Set)
_HOLE = "_ipydevice_hole_"


class Draft:
    """Changes of one text.  `edit` is None where they cannot be made faithfully."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._places = Places(source)
        self._changes: list[Span | NewLines] = []
        self._grafts: list[Callable[[Twin], None]] = []
        self._nodes: list[ast.AST] = []  # what the grafts ask the copy for
        # (place, code, is it below): "{}.to(device)" behind a node, statements beside one
        self.said: list[tuple[ast.AST, str, bool]] = []
        self._failed = False
        self._read: tuple[str, ast.Module] | None = None

    def __bool__(self) -> bool:
        return bool(self._changes) and not self._failed

    # -- expressions ------------------------------------------------------------------

    def suffix(self, node: ast.expr, text: str) -> Draft:
        """`node` becomes ``node<text>``, as in ``x`` -> ``x.to(device)``."""
        return self.wrap(node, "", text)

    def wrap(self, node: ast.expr, before: str, after: str) -> Draft:
        """`node` becomes ``<before>node<after>``: ``nn.ModuleList(`` ... ``)``."""
        start, end = self._places.span(node)
        self.said.append((node, f"{before}{{}}{after}", False))
        if not before and isinstance(node, _TIGHT):
            pass
        elif not before:
            outer = self._places.parentheses(node, start, end)
            if outer:
                start, end = outer
            else:
                before, after = "(", ")" + after
        if before:
            self._changes.append(Span(start, start, before))
        self._changes.append(Span(end, end, after))
        # "x" in "<before>x<after>" stands for the node, whatever stands there by then.
        pattern = f"{before}{_HOLE}{after}"
        _expression(pattern)
        self._graft_expression(node, lambda old: _fill(_expression(pattern), old))
        return self

    def replace(self, node: ast.expr, code: str) -> Draft:
        """`node` becomes `code`."""
        start, end = self._places.span(node)
        self._changes.append(Span(start, end, code))
        new = _target(code) if isinstance(getattr(node, "ctx", None), ast.Store) else _expression(code)
        self._graft_expression(node, lambda old: new)
        return self

    def keyword(self, call: ast.Call, name: str, value: str) -> Draft:
        """The call gets ``name=value``, in the place of one that it has already."""
        for present in call.keywords:
            if present.arg == name:
                return self.replace(present.value, value)
        end = self._places.end(call)
        at, text = self._places.argument_place(call, end, f"{name}={value}")
        self._changes.append(Span(at, at, text))
        new = ast.keyword(arg=name, value=_expression(value))

        def graft(tree: Twin) -> None:
            target = tree.of(call)
            assert isinstance(target, ast.Call)
            target.keywords.append(new)

        self._add(call, graft)
        return self

    # -- statements -------------------------------------------------------------------

    def before(self, statement: ast.stmt, code: str) -> Draft:
        """A statement above `statement`, in the same block."""
        start = self._places.start(statement)
        line = self._places.text(start[0])
        if line[start[1] :].startswith("elif"):
            parent = self.source.parent(statement)
            return self.before(parent, code) if isinstance(parent, ast.stmt) else self._fail()
        if not line[: start[1]].strip():
            self._changes.append(NewLines(start[0], False, start[0], start[1], code))
        elif _is_simple(code):
            self._changes.append(Span(start, start, f"{code}; "))
        else:
            return self._fail()
        self.said.append((statement, code, False))
        self._graft_statement(statement, code, below=False)
        return self

    def after(self, statement: ast.stmt, code: str) -> Draft:
        """A statement below `statement`, in the same block."""
        start, (end_line, end_column) = self._places.start(statement), self._places.end(statement)
        rest = self._places.text(end_line)[end_column:].strip()
        alone = not rest or rest.startswith("#") or (rest[0] == ";" and rest[1:].strip()[:1] in ("", "#"))
        if alone and not self._places.on_the_header(statement):
            self._changes.append(NewLines(end_line, True, start[0], start[1], code))
        elif _is_simple(code) and _is_simple_node(statement):
            self._changes.append(Span((end_line, end_column), (end_line, end_column), f"; {code}"))
        else:
            return self._fail()
        self.said.append((statement, code, True))
        self._graft_statement(statement, code, below=True)
        return self

    def replace_statement(self, statement: ast.stmt, code: str) -> Draft:
        """A simple statement, or a loop as a whole, becomes a simple one; the comment behind it stays."""
        if not (_is_simple(code) and (_is_simple_node(statement) or isinstance(statement, ast.For))):
            return self._fail()
        self._changes.append(Span(self._places.start(statement), self._places.end(statement), code))
        new = _statements(code)

        def graft(tree: Twin) -> None:
            body, index = tree.block(statement)
            body[index : index + 1] = new

        self._add(statement, graft)
        return self

    def remove(self, statement: ast.stmt) -> Draft:
        """Take out a statement that stands alone on its lines, in a block with others."""
        start, (end_line, end_column) = self._places.start(statement), self._places.end(statement)
        rest = self._places.text(end_line)[end_column:].strip()
        if self._places.text(start[0])[: start[1]].strip() or (rest and not rest.startswith("#")) or start[0] == 1:
            return self._fail()
        above = (start[0] - 1, len(self._places.text(start[0] - 1)))
        self._changes.append(Span(above, (end_line, len(self._places.text(end_line))), ""))

        def graft(tree: Twin) -> None:
            body, index = tree.block(statement)
            del body[index]

        self._add(statement, graft)
        return self

    def top_of(self, block: list[ast.stmt], code: str) -> Draft:
        """A statement at the top of a block, below a docstring."""
        first = block[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            return self.before(block[1], code) if len(block) > 1 else self.after(first, code)
        return self.before(first, code)

    # -- result -----------------------------------------------------------------------

    @property
    def edit(self) -> Edit | None:
        """The verified edit of the user's text, or None."""
        after = self._verified()
        if after is None or after == self.source.raw:
            return None
        cell = self.source.cell
        return Edit(
            before=self.source.raw,
            after=after,
            cell=cell.number if cell else None,
            cell_id=cell.cell_id if cell else None,
            file=None if cell else self.source.file,
        )

    @property
    def text(self) -> str | None:
        """The new Python text (as compiled, without magics); None where it isn't faithful."""
        if not self:
            return None
        try:
            return apply_changes(
                self._places.lines, self._changes, lambda line: (line, 0), newline_of(self.source.text)
            )
        except ImpossibleError:
            return None

    def tree(self, text: str) -> ast.Module:
        """The tree of the new Python text, parsed once."""
        if self._read is None or self._read[0] != text:
            self._read = text, ast.parse(text)
        return self._read[1]

    def _verified(self) -> str | None:
        text = self.text
        if text is None:
            return None
        try:
            tree = Twin(self.source)
            tree.know(self._nodes)
            for graft in self._grafts:
                graft(tree)
            compile(text, "<fix>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            if not same(self.tree(text), tree.root):
                return None
            raw = split_lines(self.source.raw)
            place = Alignment(self._places.lines, raw, self.source.shift)
            return apply_changes(raw, self._changes, place, newline_of(self.source.raw))
        except (ImpossibleError, SyntaxError, ValueError, RecursionError):
            return None

    def _fail(self) -> Draft:
        self._failed = True
        return self

    def segment(self, node: ast.AST) -> str:
        """The node's text as it is written, line breaks and all."""
        return self._places.segment(node)

    # -- tree -------------------------------------------------------------------------

    def _add(self, node: ast.AST, graft: Callable[[Twin], None]) -> None:
        self._nodes.append(node)
        self._grafts.append(graft)

    def _graft_expression(self, node: ast.expr, make: Callable[[ast.expr], ast.expr]) -> None:
        def graft(tree: Twin) -> None:
            old = tree.of(node)
            assert isinstance(old, ast.expr)
            tree.swap(node, make(old))

        self._add(node, graft)

    def _graft_statement(self, statement: ast.stmt, code: str, *, below: bool) -> None:
        new = _statements(code)

        def graft(tree: Twin) -> None:
            body, index = tree.block(statement)
            at = index + 1 if below else index
            body[at:at] = new

        self._add(statement, graft)


def _expression(code: str) -> ast.expr:
    return ast.parse(code.strip(), mode="eval").body


def _target(code: str) -> ast.expr:
    """What is assigned: of a statement, or of a loop."""
    statement = ast.parse(f"{code.strip()} = 0").body[0]
    assert isinstance(statement, ast.Assign)
    return statement.targets[0]


def _statements(code: str) -> list[ast.stmt]:
    return ast.parse(code).body


def _is_simple(code: str) -> bool:
    body = _statements(code)
    return len(body) == 1 and _is_simple_node(body[0])


def _is_simple_node(node: ast.stmt) -> bool:
    return not hasattr(node, "body")


def _fill(pattern: ast.expr, value: ast.expr) -> ast.expr:
    class Filler(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return value if node.id == _HOLE else node

    filled = Filler().visit(pattern)
    assert isinstance(filled, ast.expr)
    return filled

"""Small changes of the user's text at the places of its syntax nodes.

Every change is made twice: to the characters the user wrote and to a copy of the syntax
tree.  A draft is handed out only when the new text parses to exactly the new tree, so
nothing but the intended change can happen, whatever the formatting.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import tokenize
from collections.abc import Callable

from ipydevice.diagnose.source import Source
from ipydevice.diagnosis import Edit
from ipydevice.fixes.names import same
from ipydevice.fixes.texts import (
    Alignment,
    ImpossibleError,
    NewLines,
    Span,
    apply_changes,
    newline_of,
    split_lines,
    tokens_of,
)

# What may be followed by ".to(...)" without parentheses of its own.
_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.ListComp, ast.Dict, ast.Set)
_HOLE = "_ipydevice_hole_"


class Draft:
    """Changes of one text.  `edit` is None where they cannot be made faithfully."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lines = split_lines(source.text)
        self._changes: list[Span | NewLines] = []
        self._grafts: list[Callable[[_Copy], None]] = []
        self._nodes: list[ast.AST] = []  # what the grafts ask the copy for
        self._failed = False

    def __bool__(self) -> bool:
        return bool(self._changes) and not self._failed

    # -- expressions ------------------------------------------------------------------

    def suffix(self, node: ast.expr, text: str) -> Draft:
        """`node` becomes ``node<text>``, as in ``x`` -> ``x.to(device)``."""
        return self.wrap(node, "", text)

    def wrap(self, node: ast.expr, before: str, after: str) -> Draft:
        """`node` becomes ``<before>node<after>``: ``nn.ModuleList(`` ... ``)``."""
        start, end = self._span(node)
        if not before and isinstance(node, _TIGHT):
            pass
        elif not before:
            outer = self._parentheses(node, start, end)
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
        start, end = self._span(node)
        self._changes.append(Span(start, end, code))
        new = _expression(code)
        self._graft_expression(node, lambda old: new)
        return self

    def keyword(self, call: ast.Call, name: str, value: str) -> Draft:
        """The call gets ``name=value``, in the place of one that it has already."""
        for present in call.keywords:
            if present.arg == name:
                return self.replace(present.value, value)
        end = self._end(call)
        at, text = self._argument_place(call, end, f"{name}={value}")
        self._changes.append(Span(at, at, text))
        new = ast.keyword(arg=name, value=_expression(value))

        def graft(tree: _Copy) -> None:
            target = tree.of(call)
            assert isinstance(target, ast.Call)
            target.keywords.append(new)

        self._add(call, graft)
        return self

    # -- statements -------------------------------------------------------------------

    def before(self, statement: ast.stmt, code: str) -> Draft:
        """A statement above `statement`, in the same block."""
        start = self._start(statement)
        line = self._text(start[0])
        if line[start[1] :].startswith("elif"):
            parent = self.source.parent(statement)
            return self.before(parent, code) if isinstance(parent, ast.stmt) else self._fail()
        if not line[: start[1]].strip():
            self._changes.append(NewLines(start[0], False, start[0], start[1], code))
        elif _is_simple(code):
            self._changes.append(Span(start, start, f"{code}; "))
        else:
            return self._fail()
        self._graft_statement(statement, code, below=False)
        return self

    def after(self, statement: ast.stmt, code: str) -> Draft:
        """A statement below `statement`, in the same block."""
        start, (end_line, end_column) = self._start(statement), self._end(statement)
        rest = self._text(end_line)[end_column:].strip()
        alone = not rest or rest.startswith("#") or (rest[0] == ";" and rest[1:].strip()[:1] in ("", "#"))
        if alone and not self._on_the_header(statement):
            self._changes.append(NewLines(end_line, True, start[0], start[1], code))
        elif _is_simple(code) and _is_simple_node(statement):
            self._changes.append(Span((end_line, end_column), (end_line, end_column), f"; {code}"))
        else:
            return self._fail()
        self._graft_statement(statement, code, below=True)
        return self

    def replace_statement(self, statement: ast.stmt, code: str) -> Draft:
        """A simple statement becomes another simple one; its comment stays."""
        if not (_is_simple(code) and _is_simple_node(statement)):
            return self._fail()
        self._changes.append(Span(self._start(statement), self._end(statement), code))
        new = _statements(code)

        def graft(tree: _Copy) -> None:
            body, index = tree.block(statement)
            body[index : index + 1] = new

        self._add(statement, graft)
        return self

    def remove(self, statement: ast.stmt) -> Draft:
        """Take out a statement that stands alone on its lines, in a block with others."""
        start, (end_line, end_column) = self._start(statement), self._end(statement)
        rest = self._text(end_line)[end_column:].strip()
        if self._text(start[0])[: start[1]].strip() or (rest and not rest.startswith("#")) or start[0] == 1:
            return self._fail()
        above = (start[0] - 1, len(self._text(start[0] - 1)))
        self._changes.append(Span(above, (end_line, len(self._text(end_line))), ""))

        def graft(tree: _Copy) -> None:
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
            return apply_changes(self._lines, self._changes, lambda line: (line, 0), newline_of(self.source.text))
        except ImpossibleError:
            return None

    def _verified(self) -> str | None:
        text = self.text
        if text is None:
            return None
        try:
            tree = _Copy(self.source)
            tree.know(self._nodes)
            for graft in self._grafts:
                graft(tree)
            compile(text, "<fix>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            if not same(ast.parse(text), tree.root):
                return None
            raw = split_lines(self.source.raw)
            place = Alignment(self._lines, raw, self.source.shift)
            return apply_changes(raw, self._changes, place, newline_of(self.source.raw))
        except (ImpossibleError, SyntaxError, ValueError, RecursionError):
            return None

    # -- places -----------------------------------------------------------------------

    def _fail(self) -> Draft:
        self._failed = True
        return self

    def _text(self, line: int) -> str:
        return self._lines[line - 1]

    def _column(self, line: int, utf8: int) -> int:
        return len(self._lines[line - 1].encode()[:utf8].decode(errors="ignore"))

    def _start(self, node: ast.AST) -> tuple[int, int]:
        first: ast.AST = node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.decorator_list:
            first = node.decorator_list[0]
            return first.lineno, self._text(first.lineno).index("@")
        line = first.lineno  # type: ignore[attr-defined]
        return line, self._column(line, first.col_offset)  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> tuple[int, int]:
        line: int = node.end_lineno  # type: ignore[attr-defined]
        return line, self._column(line, node.end_col_offset)  # type: ignore[attr-defined]

    def _span(self, node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
        return self._start(node), self._end(node)

    def _between(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        if start[0] == end[0]:
            return self._text(start[0])[start[1] : end[1]]
        middle = self._lines[start[0] : end[0] - 1]
        return "\n".join([self._text(start[0])[start[1] :], *middle, self._text(end[0])[: end[1]]])

    def segment(self, node: ast.AST) -> str:
        """The node's text as it is written, line breaks and all."""
        return self._between(*self._span(node))

    def _parentheses(
        self, node: ast.AST, start: tuple[int, int], end: tuple[int, int]
    ) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """The parentheses that group exactly this node on its lines, not those of a call."""
        line, last = self._text(start[0]), self._text(end[0])
        left = len(line[: start[1]].rstrip()) - 1
        right = end[1] + len(last[end[1] :]) - len(last[end[1] :].lstrip())
        if left < 0 or line[left] != "(" or right >= len(last) or last[right] != ")":
            return None
        # Two pairs cannot both be the call's: where the text without this pair still parses
        # to the same tree, or the pair is needed, it is a grouping.  A call's pair follows its function.
        parent = self.source.parent(node)
        if isinstance(parent, ast.Call) and node is not parent.func:
            function_end = self._end(parent.func)
            if not self._between(function_end, (start[0], left)).strip(" \t\n\\"):
                return None
        if isinstance(parent, ast.ClassDef):
            return None
        return (start[0], left), (end[0], right + 1)

    def _argument_place(self, call: ast.Call, end: tuple[int, int], text: str) -> tuple[tuple[int, int], str]:
        """Where an argument goes: behind the last one, in front of a trailing comma."""
        start = self._end(call.func)
        tokens = tokens_of("(" + self._between(start, end) + ")")  # a pair around it lets it run over lines
        tokens = [t for t in tokens[1:-1] if t.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE)]
        if len(tokens) < 2 or tokens[-1].string != ")":
            raise ImpossibleError
        last = tokens[-2]
        if last.string == "(" and len(tokens) == 2:
            return self._token_place(start, last.end), text
        comma = last.string == ","
        place = self._token_place(start, (tokens[-3] if comma else last).end)
        arguments = [*call.args, *(k.value for k in call.keywords)]
        final = max(arguments, key=lambda a: (a.end_lineno or 0, a.end_col_offset or 0))
        named = next((k for k in call.keywords if k.value is final), None)
        line, column = self._start(named or final)
        leading = self._text(line)[:column]
        if leading.strip() or self._text(end[0])[: end[1] - 1].strip():
            return place, f", {text}"
        # One argument a line: so stands the new one, below the comment of the last.
        if comma:
            below = self._token_place(start, last.end)[0]
            return (below, len(self._text(below))), f"\n{leading}{text},"
        return place, f",\n{leading}{text}"

    @staticmethod
    def _token_place(start: tuple[int, int], at: tuple[int, int]) -> tuple[int, int]:
        line, column = at
        return (start[0] + line - 1, column - 1 + start[1]) if line == 1 else (start[0] + line - 1, column)

    def _on_the_header(self, statement: ast.stmt) -> bool:
        """True for the body in ``for x in xs: body``."""
        parent = self.source.parent(statement)
        if parent is None or isinstance(parent, ast.Module):
            return False
        for _, block in ast.iter_fields(parent):
            if isinstance(block, list) and statement in block:
                line, column = self._start(block[0])
                return bool(self._text(line)[:column].strip())
        return False

    # -- tree -------------------------------------------------------------------------

    def _add(self, node: ast.AST, graft: Callable[[_Copy], None]) -> None:
        self._nodes.append(node)
        self._grafts.append(graft)

    def _graft_expression(self, node: ast.expr, make: Callable[[ast.expr], ast.expr]) -> None:
        def graft(tree: _Copy) -> None:
            old = tree.of(node)
            assert isinstance(old, ast.expr)
            tree.swap(node, make(old))

        self._add(node, graft)

    def _graft_statement(self, statement: ast.stmt, code: str, *, below: bool) -> None:
        new = _statements(code)

        def graft(tree: _Copy) -> None:
            body, index = tree.block(statement)
            at = index + 1 if below else index
            body[at:at] = new

        self._add(statement, graft)


class _Copy:
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
            name, index = _place(parent, node)
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
                name, index = _place(holder, old)
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
        name, index = _place(holder, self.of(statement))
        if index is None:
            raise ImpossibleError
        body: list[ast.stmt] = getattr(holder, name)
        return body, index


def _place(holder: ast.AST, node: ast.AST) -> tuple[str, int | None]:
    """The field of `holder` that has this very node, and where in it if it is a list."""
    for name, value in ast.iter_fields(holder):
        if value is node:
            return name, None
        if isinstance(value, list):
            for index, item in enumerate(value):
                if item is node:
                    return name, index
    raise ImpossibleError


def _expression(code: str) -> ast.expr:
    return ast.parse(code.strip(), mode="eval").body


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

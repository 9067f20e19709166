"""Which node was running, and what its operands are.

``co_positions`` gives the exact span of the running instruction's expression (PEP 657).
Where the span matches no node there are rules: a method chain over several lines
reports only ``m(2)``, a store only its target, ``if t:`` the whole test.
"""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Iterator
from typing import Any

from ipydevice.diagnose.source import Source, Span, span_of


def running(source: Source, line: int, span: Span | None) -> ast.AST | None:
    """The node of the user's text that was running; the statement of the line when not told."""
    if span is not None:
        exact = source.by_span.get(span)
        if exact is not None:
            return exact
        end = span[1], span[3]
        chained = [
            node
            for node in source.placed
            if isinstance(node, ast.expr) and (node.end_lineno, node.end_col_offset) == end
        ]
        if chained:  # the smallest one that begins before the span
            return min(chained, key=_size)
        around = [node for node in source.placed if _covers(node, span)]
        if around:
            return min(around, key=_size)
    statements = [
        node
        for node in source.placed
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return min(statements, key=_size) if statements else None


def _covers(node: ast.expr | ast.stmt, span: Span) -> bool:
    mine = span_of(node)
    return (mine[0], mine[2]) <= (span[0], span[2]) and (span[1], span[3]) <= (mine[1], mine[3])


def _size(node: ast.expr | ast.stmt) -> tuple[int, int]:
    mine = span_of(node)
    return mine[1] - mine[0], mine[3] - mine[2]


def cut_out(file: str, span: Span | None, module_globals: dict[str, Any]) -> ast.AST | None:
    """The running expression of a library's frame, parsed alone."""
    if span is None:
        return None
    lines = linecache.getlines(file, module_globals)[span[0] - 1 : span[1]]
    if not lines:
        return None
    raw = [line.encode() for line in lines]
    raw[-1] = raw[-1][: span[3]]
    raw[0] = raw[0][span[2] :]
    text = b"".join(raw).decode(errors="replace")
    for attempt in (f"({text})", text):
        try:
            tree = ast.parse(textwrap.dedent(attempt))
        except (SyntaxError, ValueError):
            continue
        first = tree.body[0] if tree.body else None
        return first.value if isinstance(first, ast.Expr) else first
    return None


def operands(node: ast.AST | None) -> list[tuple[ast.expr, str]]:
    """The expressions whose values meet in `node`, each with its role.

    Roles: "left", "right", "target", "value", "index", "callee", "receiver", "test",
    the number of a positional argument or the name of a keyword argument.
    """
    return list(_operands(node))


def _operands(node: ast.AST | None) -> Iterator[tuple[ast.expr, str]]:
    match node:
        case ast.BinOp():
            yield node.left, "left"
            yield node.right, "right"
        case ast.Compare():
            yield node.left, "left"
            yield from ((part, "right") for part in node.comparators)
        case ast.UnaryOp():
            yield node.operand, "value"
        case ast.BoolOp():
            yield from ((part, "value") for part in node.values)
        case ast.Call():
            if isinstance(node.func, ast.Attribute):
                yield node.func.value, "receiver"
            yield node.func, "callee"
            yield from ((arg, str(position)) for position, arg in enumerate(node.args))
            yield from ((kw.value, kw.arg or "**") for kw in node.keywords)
        case ast.Subscript():
            yield node.value, "value"
            yield from ((part, "index") for part in _index_parts(node.slice))
        case ast.Attribute():
            yield node.value, "receiver"
        case ast.AugAssign(target=ast.Subscript()):  # `a[i] += b` indexes a by i first
            yield from _targets([node.target])
            yield node.value, "value"
        case ast.AugAssign():
            yield node.target, "target"
            yield node.value, "value"
        case ast.Assign():
            yield from _targets(node.targets)
            yield node.value, "value"
        case ast.AnnAssign(value=ast.expr()):
            yield from _targets([node.target])
            assert node.value is not None
            yield node.value, "value"
        case ast.If() | ast.While() | ast.Assert() | ast.IfExp():
            yield node.test, "test"
        case ast.Return(value=ast.expr()) | ast.Expr():
            assert node.value is not None
            yield node.value, "value"
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            yield node.iter, "value"
        case ast.With() | ast.AsyncWith():
            yield from ((part.context_expr, "value") for part in node.items)
        case ast.Await() | ast.Starred() | ast.NamedExpr():
            yield node.value, "value"
        case ast.Tuple() | ast.List():
            yield from ((part, "value") for part in node.elts)
        case ast.Name():  # `if t:` and `for x in t:` report t alone since Python 3.12
            yield node, "value"


def _index_parts(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Tuple):
        for part in node.elts:
            yield from _index_parts(part)
    elif not isinstance(node, (ast.Slice, ast.Constant)):
        yield node


def _targets(nodes: list[ast.expr]) -> Iterator[tuple[ast.expr, str]]:
    """What a store meets: `a[i] = b` indexes a by i, `p.grad = g` reaches p."""
    for node in nodes:
        if isinstance(node, ast.Subscript):
            yield node.value, "target"
            yield from ((part, "index") for part in _index_parts(node.slice))
        elif isinstance(node, ast.Attribute):
            yield node.value, "target"
        elif isinstance(node, (ast.Tuple, ast.List)):
            yield from _targets(node.elts)


def store_statement(source: Source, node: ast.AST) -> ast.AST:
    """`node`, or the whole assignment when `node` is only its target (``a[i] = b``)."""
    target, up = node, source.parent(node)
    while isinstance(up, (ast.Tuple, ast.List, ast.Starred)):
        target, up = up, source.parent(up)
    if isinstance(up, ast.Assign) and target in up.targets:
        return up
    if isinstance(up, (ast.AugAssign, ast.AnnAssign)) and target is up.target:
        return up
    return node

"""Whether the user's own code is prepared for the error: inside their ``try`` a failing call is left alone."""

from __future__ import annotations

import ast
from types import FrameType

from ipydevice.devicecheck.callsite import Base
from ipydevice.diagnose.evaluate import MISSING, Scope, value
from ipydevice.diagnose.frames import Sources

_SUPPRESSING = ("suppress", "raises", "assertRaises", "assertRaisesRegex")


def caught_by_user(frames: list[FrameType], error: BaseException, sources: Sources, base: Base | None) -> bool:
    """Whether a ``try`` or ``suppress`` around the call, in any of these frames, would take `error`.

    One around the whole check does not count: it is there for what the check lets through.
    """
    return any(
        _caught_in(frame, error, sources, base.line if base is not None and frame.f_code is base.code else None)
        for frame in frames
    )


def _caught_in(frame: FrameType, error: BaseException, sources: Sources, opened: int | None) -> bool:
    source = sources.of_code_file(frame.f_code.co_filename)
    if source is None:
        return False
    line = frame.f_lineno
    first = frame.f_code.co_firstlineno
    for node in source.guards:
        if node.lineno < first:
            continue
        last = node.body[-1]
        begin, end = node.body[0].lineno, last.end_lineno or last.lineno
        if not begin <= line <= end or (opened is not None and begin <= opened <= end):
            continue
        if opened is not None and isinstance(node, (ast.With, ast.AsyncWith)) and node.lineno <= opened < begin:
            continue  # ``with pytest.raises(...), check():``
        if _function_begins(source.tree, node) > first:  # a try of a function that encloses nothing of this frame
            continue
        if _takes(node, error, frame):
            return True
    return False


def _function_begins(tree: ast.AST, inner: ast.AST) -> int:
    """The first line of the innermost function around `inner`; 0 at module level."""
    begins = 0
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and (
            node.lineno <= inner.lineno <= (node.end_lineno or node.lineno)  # type: ignore[attr-defined]
        ):
            begins = max(begins, node.lineno)
    return begins


def _takes(node: ast.Try | ast.TryStar | ast.With | ast.AsyncWith, error: BaseException, frame: FrameType) -> bool:
    scope = Scope.of_frame(frame)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
        return any(
            _name(call.func) in _SUPPRESSING and any(_matches(arg, error, scope) for arg in call.args[:8])
            for call in calls
        )
    return any(handler.type is None or _matches(handler.type, error, scope) for handler in node.handlers)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _matches(node: ast.expr, error: BaseException, scope: Scope) -> bool:
    """Whether an ``except`` of these classes takes the error; of classes that cannot be read we think so."""
    wanted = value(node, scope)
    if wanted is MISSING:
        return True
    classes = wanted if type(wanted) is tuple else (wanted,)
    return any(isinstance(each, type) and each in type(error).__mro__ for each in classes)

"""What functions keep in dicts and names of the workspace: an edit of such a function leaves what is kept as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import is_of
from ipydevice.fixes.context import Context
from ipydevice.fixes.names import free, last_name, root

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def mended(ctx: Context, before: ast.AST, after: ast.AST, device: str) -> Iterator[tuple[str, str]]:
    """(name, code that mends what it keeps) for the dicts and names that the changed functions fill and ask first.

    ``if name not in MODELS: MODELS[name] = build(name)``: modules kept there are moved, tensors are forgotten.
    """
    old = {ast.dump(node) for node in ast.walk(before) if isinstance(node, _FUNCTIONS)}
    for node in ast.walk(after):
        if not isinstance(node, _FUNCTIONS) or ast.dump(node) in old:
            continue
        for name in sorted(free(node)):
            live = ctx.finding.namespace.get(name)
            if live is not None and is_of(live, dict) and _fills(node, name) and _asks(node, name):
                code = _dict_mended(ctx, name, live, device)
            elif _is_declared(node, name) and _asks(node, name):
                code = _value_mended(ctx, name, live, device)
            else:
                code = None
            if code is not None:
                yield name, code


def _fills(function: ast.AST, name: str) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and root(node) == name:
            return True
        if isinstance(node, ast.Call) and last_name(node.func) in ("setdefault", "update") and root(node.func) == name:
            return True
    return False


def _asks(function: ast.AST, name: str) -> bool:
    """Is the name in a condition, or asked by ``get`` or ``setdefault``, or is its missing key caught?"""
    for node in ast.walk(function):
        tests: Iterable[ast.AST] = ()
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            tests = [node.test]
        elif isinstance(node, ast.Try):
            tests = node.body
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            tests = [node.func.value] if node.func.attr in ("get", "setdefault") else []
        if any(isinstance(part, ast.Name) and part.id == name for test in tests for part in ast.walk(test)):
            return True
    return False


def _is_declared(function: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Global) and name in node.names for node in ast.walk(function))


def _dict_mended(ctx: Context, name: str, live: dict[Any, Any], device: str) -> str | None:
    kept = dict.values(live)
    if any(ctx.strays_like(found.value) for one in kept for found in placement.walk(one)):
        if all(placement.is_module(one) for one in kept):
            return f"for module in {name}.values():\n    module.to({device})"
        return f"{name}.clear()"
    return None


def _value_mended(ctx: Context, name: str, live: Any, device: str) -> str | None:
    if not any(ctx.strays_like(found.value) for found in placement.walk(live)):
        return None
    return f"{name}.to({device})" if placement.is_module(live) else f"{name} = None"

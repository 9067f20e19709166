"""Locals that a function takes to the host, told from its text."""

from __future__ import annotations

import ast

from ipydevice.fixes.names import bound


def brought_home(function: ast.AST, target: str | None) -> set[str]:
    """The names that a function binds to what it took to the host, and to what it made like that."""
    found: set[str] = set()
    if target is None or target.startswith("cpu"):
        return found
    assigned = [n for n in ast.walk(function) if isinstance(n, ast.Assign)]
    while True:
        more = {name for one in assigned if _is_home(one.value, found) for name in bound([one])} - found
        if not more:
            return found
        found |= more


def _is_home(value: ast.expr, home: set[str]) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(attr="cpu")):
            return True
        case ast.Call(func=ast.Attribute(attr="to"), args=[ast.Constant(value="cpu"), *_]):
            return True
        case ast.Call(func=ast.Attribute(attr="to" | "cuda")):
            return False
        case ast.Call(func=function, args=args) if not any(k.arg == "device" for k in value.keywords):
            parts = [function.value, *args] if isinstance(function, ast.Attribute) else args
            return any(_is_home(part, home) for part in parts)
        case ast.List(elts=elts) | ast.Tuple(elts=elts):
            return any(_is_home(part, home) for part in elts)
        case ast.ListComp(elt=elt) | ast.GeneratorExp(elt=elt):
            return _is_home(elt, home)
        case ast.Name(id=name):
            return name in home
    return False

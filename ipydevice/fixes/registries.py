"""Functions and classes that enter themselves in a table when they are defined: ``@register("cosine")``."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType
from typing import Any

from ipydevice.diagnose.evaluate import is_of
from ipydevice.fixes.names import Effects, free, root
from ipydevice.fixes.workspace import Workspace

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def changed_by(function: ast.AST) -> set[str]:
    """Names of the workspace whose objects a call of the function may change, by what it hands back as well."""
    found: set[str] = set()
    for inner in (node for node in ast.walk(function) if isinstance(node, _FUNCTIONS)):
        found |= Effects(_body(inner)).changes
    return found & free(function)


def _body(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> ast.Module:
    body = [ast.Expr(function.body)] if isinstance(function, ast.Lambda) else function.body
    return ast.Module(body=list(body), type_ignores=[])


def hears_of_classes(node: ast.AST) -> bool:
    """Has a class a hook for each class that inherits from it?"""
    return isinstance(node, ast.ClassDef) and (
        any(getattr(part, "name", "") == "__init_subclass__" for part in node.body)
        or any(keyword.arg == "metaclass" for keyword in node.keywords)
    )


def filled_once(functions: Iterable[ast.AST], own: Effects, work: Workspace) -> set[str]:
    """Tables of functions or classes in which a second entry does not replace the first: they are made anew before it.

    ``TABLE.setdefault(name, f)``, ``if name in TABLE: raise KeyError(name)``, ``TABLE.append(f)``
    """
    namespace = work.finding.namespace
    found: set[str] = set()
    for tree in (*functions, own.tree):
        once = _asked_first(tree)
        found |= {name for name in once if _is_table(namespace.get(name)) and name not in own.binds}
    return found


def _asked_first(tree: ast.AST) -> set[str]:
    asked: set[str] = set()
    stored: set[str] = set()
    taken: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="setdefault" | "append")):
                taken.add(name)
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=name)]):
                asked.add(name)
            case ast.Subscript(ctx=ast.Store()):
                stored |= {name for name in [root(node)] if name is not None}
    return taken | (asked & stored)


def _is_table(live: Any) -> bool:
    """A dict or list of functions and classes."""
    held = list(dict.values(live)) if is_of(live, dict) else list(live) if type(live) is list else []
    return bool(held) and all(is_of(one, type, FunctionType, BuiltinFunctionType) for one in held)

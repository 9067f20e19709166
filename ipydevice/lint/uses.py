"""What is done with a value: is it moved, only asked for its shape, or handed to a function that may move it?"""

from __future__ import annotations

import ast

from ipydevice.lint.names import Names, Scope

MOVES = ("to", "cuda", "cpu", "xpu", "to_empty")
# Methods and attributes after which a tensor's device no longer matters.
HARMLESS = ("to", "cuda", "cpu", "type_as", "xpu", "tolist", "item", "numpy", "shape", "size", "numel", "storage")


def placed_later(names: Names, scope: Scope, node: ast.Call) -> bool:
    """Whether the new tensor is moved, is an index, or never meets others."""
    child: ast.AST = node
    for up in names.source.ancestors(node):
        if isinstance(up, ast.Attribute) and up.value is child and up.attr in HARMLESS:
            return True
        if isinstance(up, ast.Subscript) and up.slice is child:
            return True  # the host's indices are taken everywhere
        if isinstance(up, ast.Call) and child in up.args and names.full(up.func).startswith("torch.") is False:
            return not isinstance(up.func, ast.Attribute)  # handed to a function of the user's: it may move it
        if isinstance(up, ast.stmt):
            break
        child = up
    statement = names.source.statement(node)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return isinstance(statement, (ast.Return, ast.AugAssign, ast.Assign)) is False
    name = statement.targets[0].id
    return any(
        (isinstance(use, ast.Attribute) and use.attr in HARMLESS and getattr(use.value, "id", "") == name)
        or (isinstance(use, ast.Subscript) and name in _names_in(use.slice))
        or (isinstance(use, ast.Call) and name in [getattr(arg, "id", "") for arg in use.args] and is_own_function(use))
        for use in ast.walk(scope)
    )


def is_own_function(call: ast.Call) -> bool:
    """A call of a plain name: a function of the user's, which may move its argument."""
    return isinstance(call.func, ast.Name)


def _names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}

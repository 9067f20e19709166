"""How to take back what a cell did to an object that outlives it, before the cell runs a second time."""

from __future__ import annotations

import ast

from ipydevice.language import say

_HOOKS = "._backward_hooks.popitem()"
# By method: code that takes one call back. torch keeps hooks by number, the latest last (torch/utils/hooks.py).
_UNDO = {
    "append": ".pop()",
    "register_hook": _HOOKS,
    "register_full_backward_hook": _HOOKS,
    "register_forward_hook": "._forward_hooks.popitem()",
    "register_forward_pre_hook": "._forward_pre_hooks.popitem()",
    "add_param_group": ".param_groups.pop()",
}


def code(tree: ast.Module, node: ast.Call | ast.AugAssign) -> str | None:
    """Code that takes a call back; None where there is none, or where a loop made any number of them."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    for statement in ast.walk(tree):
        inside = any(part is node for part in ast.walk(statement))
        if inside and isinstance(statement, (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.GeneratorExp)):
            return None
        handle = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is node else None
        if isinstance(handle, (ast.Name, ast.Attribute)) and "hook" in node.func.attr:
            return f"{ast.unparse(handle)}.remove()"
    taken = _UNDO.get(node.func.attr)
    return None if taken is None else f"{ast.unparse(node.func.value)}{taken}"


def spoken(tree: ast.Module, node: ast.Call | ast.AugAssign) -> str:
    """The end of a sentence: how to take it back, where that can be said."""
    found = code(tree, node)
    return "" if found is None else say(" ({found} takes it back)", found=found)

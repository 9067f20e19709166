"""Where a tensor that is told no device is made: on the host, but where the code around it sets another default."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ipydevice.diagnose import bindings

if TYPE_CHECKING:
    from ipydevice.lint.names import Names

_DEVICE = re.compile(r"(^|_)device(_|$)|DeviceContext$", re.IGNORECASE)
_SETTERS = ("torch.set_default_device", "torch.set_default_tensor_type")
# They choose the current card of a kind; factories make tensors on the host as before.
_CURRENT_CARD = re.compile(r"^torch\.(cuda|xpu|mps|accelerator)\.")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Defaults:
    """The default devices that one document sets: ``with torch.device(...)``, and for good."""

    def __init__(self, names: Names) -> None:
        self.names = names

    @cached_property
    def is_set(self) -> bool:
        """Whether a default is set for all that follows: where that is, and for whom, only a run tells."""
        return any(True for _ in self.names.calls_of(*_SETTERS))

    def around(self, node: ast.AST, *, real: bool = False) -> bool:
        """Whether a ``with torch.device(...)`` of the same function stands around; `real`: one that holds data."""
        for up in self.names.source.ancestors(node):
            if isinstance(up, (ast.With, ast.AsyncWith)) and self._sets(up, real=real):
                return True
            if isinstance(up, _FUNCTIONS):
                return False
        return False

    @cached_property
    def forwards_run_inside(self) -> bool:
        """Whether something that may be a module is called in such a ``with``, or in a function called there."""
        functions = self._functions
        seen: set[str] = set()
        todo: list[ast.AST] = list(self._blocks())
        while todo:
            for node in ast.walk(todo.pop()):
                if not isinstance(node, ast.Call):
                    continue
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called in functions and called not in seen:
                    seen.add(called)
                    todo += functions[called]
                if called.startswith("forward") or self._may_be_module(node.func):
                    return True
        return False

    def makes_all_of(self, cls: ast.ClassDef, depth: int = 0) -> bool:
        """Whether each instance of a class is made in such a ``with``, if need be by the class that holds it."""
        made = bindings.calls(self.names.tree, cls.name)
        return bool(made) and depth < 4 and all(self._is_made_inside(call, depth) for call in made)

    def _is_made_inside(self, call: ast.Call, depth: int) -> bool:
        if self.around(call, real=True):
            return True
        holder = self.names.source.class_of(call)
        return holder is not None and self.makes_all_of(holder, depth + 1)

    def _blocks(self) -> Iterator[ast.stmt]:
        for node in self.names.nodes:
            if isinstance(node, (ast.With, ast.AsyncWith)) and self._sets(node):
                yield from node.body

    @cached_property
    def _functions(self) -> dict[str, list[ast.AST]]:
        found: dict[str, list[ast.AST]] = {}
        for node in self.names.nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.setdefault(node.name, []).append(node)
        return found

    def _may_be_module(self, func: ast.expr) -> bool:
        """``model(x)``, ``self.net(x)``: neither imported nor a function or class of the document."""
        if isinstance(func, ast.Attribute):
            return isinstance(func.value, ast.Name) and func.value.id == "self" and func.attr not in self._functions
        if not isinstance(func, ast.Name) or self.names.full(func) or func.id in self._functions:
            return False
        scope = self.names.source.function(func)
        if scope is not None and (func.id in bindings.parameters(scope) or bindings.of_name(scope, func.id)):
            return True
        return bool(bindings.of_name(self.names.tree, func.id)) and func.id not in self._classes

    @cached_property
    def _classes(self) -> set[str]:
        return {cls.name for cls in self.names.classes}

    def _sets(self, block: ast.With | ast.AsyncWith, *, real: bool = False) -> bool:
        return any(self._is_device(item.context_expr, real=real) for item in block.items)

    def _is_device(self, given: ast.expr, *, real: bool) -> bool:
        match given:
            case ast.IfExp(body=body, orelse=orelse):
                return any(self._is_device(part, real=real) for part in (body, orelse))
            case ast.Call(func=func):
                called = self.names.full(func) or ast.unparse(func)
                if _CURRENT_CARD.match(called) or (real and "meta" in ast.unparse(given)):
                    return False
                return called == "torch.device" or bool(_DEVICE.search(called.rpartition(".")[2]))
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return bool(_DEVICE.search(name)) or self._names_device(given)
        return False

    def _names_device(self, node: ast.expr) -> bool:
        """A name that is bound to ``torch.device(...)``."""
        if not isinstance(node, ast.Name):
            return False
        scope = self.names.source.function(node) or self.names.tree
        found = bindings.of_name(scope, node.id) or bindings.of_name(self.names.tree, node.id)
        return any(self.names.called(binding.value) == "torch.device" for binding in found)

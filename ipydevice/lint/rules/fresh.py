"""Tensors that the methods of a module make: on the host, whatever the device of the module and its input."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ipydevice.diagnose import bindings
from ipydevice.fixes.edits import Draft
from ipydevice.lint.names import Names
from ipydevice.lint.numbers import becomes_number
from ipydevice.lint.rule import Change, Problem, rule
from ipydevice.lint.uses import placed_later

_STATE = re.compile(r"init.*(hidden|state|memory|carry)|(hidden|state).*init|zero_state|initial_state", re.IGNORECASE)
_LOSS = re.compile(r"^(?!test).*(^|_)(loss|losses|criterion)(_|$)")
_SHAPED = ("shape", "size", "dtype", "device", "dim", "ndim", "numel", "new_zeros")


@rule(
    "IPD004",
    "tensor-made-in-forward",
    "A factory without device= makes its tensor on the host (or the default device) on every call, whatever the "
    "device of the model and its input.",
)
def made_in_forward(names: Names) -> Iterator[Problem]:
    if names.defaults.forwards_run_inside:
        return
    for method, node in _computing(names):
        if isinstance(node, ast.Call) and names.is_fresh(node) and not _may_stay(names, method, node):
            shown = names.source.segment(node.func)
            change = _on_input(names, method, node)
            if change is not None or _is_forward(method.name):
                yield Problem(node, f"`{shown}(...)` in {method.name}() has no device=", change)


def _computing(names: Names) -> Iterator[tuple[ast.FunctionDef, ast.AST]]:
    """What the forward methods of modules run, and the functions and methods that compute a loss."""
    yield from ((method, node) for _, method, node in names.in_methods(_is_forward))
    for scope, nodes in names.nodes_of.items():
        if isinstance(scope, ast.FunctionDef) and _LOSS.search(scope.name) and not _is_forward(scope.name):
            yield from ((scope, node) for node in nodes)


def _may_stay(names: Names, function: ast.FunctionDef, node: ast.Call) -> bool:
    return placed_later(names, function, node) or becomes_number(names, function, node)


def _is_forward(method: str) -> bool:
    return method == "forward" or method.startswith("forward_")


def _on_input(names: Names, method: ast.FunctionDef, node: ast.Call) -> Change | None:
    """``device=x.device``, of the first input that is surely a tensor and still the one given."""
    for name in bindings.parameters(method)[names.source.class_of(method) is not None :]:
        if any(binding.line <= node.lineno for binding in bindings.of_name(method, name)):
            continue
        uses = [u for u in ast.walk(method) if isinstance(u, ast.Attribute) and getattr(u.value, "id", "") == name]
        if any(use.attr in _SHAPED for use in uses):
            return _with_device(node, f"{name}.device")
    return None


def _with_device(node: ast.Call, device: str) -> Change:
    def change(draft: Draft) -> object:
        return draft.keyword(node, "device", device)

    return change


@rule(
    "IPD009",
    "hidden-state-on-host",
    "A hidden state made without device= is on the host; the cell it is given to is where the model is.",
)
def hidden_state(names: Names) -> Iterator[Problem]:
    for _, method, node in names.in_methods(_makes_state):
        if isinstance(node, ast.Call) and names.is_fresh(node) and not _may_stay(names, method, node):
            shown = names.source.segment(node.func)
            yield Problem(
                node,
                f"`{shown}(...)` in {method.name}() has no device=",
                _with_device(node, "next(self.parameters()).device"),
            )


def _makes_state(method: str) -> bool:
    return _STATE.search(method) is not None

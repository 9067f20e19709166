"""What classes of nn.Module keep, and what is asked of their instances."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice.diagnose import bindings
from ipydevice.fixes.edits import Draft
from ipydevice.lint.names import Names, Scope
from ipydevice.lint.rule import Change, Problem, rule
from ipydevice.lint.uses import HARMLESS, MOVES, is_own_function


@rule(
    "IPD005",
    "tensor-attribute-not-registered",
    "Only parameters and buffers follow the module when it is moved; a tensor kept as a plain attribute stays behind.",
)
def plain_attribute(names: Names) -> Iterator[Problem]:
    for cls, _, node, name in _set_in_init(names):
        fresh = isinstance(node.value, ast.Call) and names.is_fresh(node.value)
        if not fresh or names.defaults.makes_all_of(cls):
            continue
        if _met_in_forward(names, cls, name) and len(bindings.of_attribute(cls, name)) == 1:
            yield Problem(
                node,
                f"self.{name} is a plain tensor: it stays behind when the module moves",
                _registered(names, node, name),
            )


def _set_in_init(names: Names) -> Iterator[tuple[ast.ClassDef, ast.FunctionDef, ast.Assign, str]]:
    """``self.name = ...`` in the __init__ of modules that leave moving to nn.Module."""
    for cls, method, node in names.in_methods("__init__".__eq__):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]) if not _moves_itself(
                names, cls
            ):
                yield cls, method, node, name


def _moves_itself(names: Names, cls: ast.ClassDef) -> bool:
    return any(method.name in ("_apply", "to", "cuda") for method in names.methods(cls))


def _met_in_forward(names: Names, cls: ast.ClassDef, name: str) -> bool:
    """Whether a method uses the attribute as it is: not moved there, not only asked for its shape."""
    used = False
    for method in names.methods(cls):
        if method.name == "__init__":
            continue
        for node in ast.walk(method):
            if isinstance(node, ast.Attribute) and node.attr == name and getattr(node.value, "id", "") == "self":
                up = names.source.parent(node)
                if isinstance(up, ast.Attribute) and up.attr in HARMLESS:
                    return False
                if isinstance(up, ast.Call) and is_own_function(up):
                    return False
                used = used or method.name.startswith("forward")
    return used


def _registered(names: Names, node: ast.Assign, name: str) -> Change | None:
    value = names.source.segment(node.value)
    if node.lineno != node.end_lineno:
        return None

    def change(draft: Draft) -> object:
        return draft.replace_statement(node, f'self.register_buffer("{name}", {value}, persistent=False)')

    return change


@rule(
    "IPD006",
    "modules-in-plain-container",
    ".to(), parameters() and state_dict() see modules in nn.ModuleList and nn.ModuleDict, not those in a list or dict.",
)
def plain_container(names: Names) -> Iterator[Problem]:
    for cls, method, node, name in _set_in_init(names):
        whole = _container_of_modules(names, node.value)
        kind = whole or _filled(names, method, name, node.value)
        if kind and not _known_elsewhere(names, cls, name, node):
            yield Problem(
                node,
                f"self.{name} is a plain {'dict' if kind == 'ModuleDict' else 'list'} of modules: use nn.{kind}",
                _wrapped(names, node.value, kind) if whole else None,
            )


def _container_of_modules(names: Names, value: ast.expr) -> str:
    match value:
        case ast.List(elts=[_, *_] as parts) if all(names.is_module_call(part) for part in parts):
            return "ModuleList"
        case ast.ListComp(elt=part) if names.is_module_call(part):
            return "ModuleList"
        case ast.Dict(keys=[_, *_] as keys, values=parts) if all(names.is_module_call(part) for part in parts):
            return "ModuleDict" if all(isinstance(k, ast.Constant) and isinstance(k.value, str) for k in keys) else ""
        case ast.DictComp(value=part) if names.is_module_call(part):
            return "ModuleDict"
    return ""


def _filled(names: Names, method: ast.FunctionDef, name: str, value: ast.expr) -> str:
    """An empty list of the object's that is filled with modules by append."""
    if not (isinstance(value, ast.List) and not value.elts):
        return ""
    for call in bindings.own_nodes(method):
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=target), attr="append"),
                args=[given],
            ) if target == name and names.is_module_call(given):
                return "ModuleList"
    return ""


def _known_elsewhere(names: Names, cls: ast.ClassDef, name: str, node: ast.AST) -> bool:
    """Whether the same modules are registered by other means: in a Sequential, by setattr or add_module."""
    for use in ast.walk(cls):
        if isinstance(use, ast.Attribute) and use.attr == name and isinstance(use.ctx, ast.Load):
            for up in names.source.ancestors(use):
                if isinstance(up, ast.Call) and names.full(up.func).startswith("torch.nn."):
                    return True
                if isinstance(up, ast.For) and any(
                    isinstance(part, ast.Call)
                    and (getattr(part.func, "id", "") == "setattr" or getattr(part.func, "attr", "") == "add_module")
                    for part in ast.walk(up)
                ):
                    return True
                if isinstance(up, (ast.FunctionDef, ast.ClassDef)):
                    break
    return bool(bindings.of_attribute(cls, name)[1:]) and any(
        names.full(binding.value.func).startswith("torch.nn.")
        for binding in bindings.of_attribute(cls, name)
        if isinstance(binding.value, ast.Call) and binding.node is not node and binding.how == "assignment"
    )


def _wrapped(names: Names, value: ast.expr, kind: str) -> Change | None:
    written = next(
        (f"{prefix}.{kind}" for prefix in ("nn", "torch.nn") if names.full(ast.parse(f"{prefix}.X", mode="eval").body)),
        "",
    )
    if not written:
        return None

    def change(draft: Draft) -> object:
        return draft.wrap(value, f"{written}(", ")")

    return change


@rule(
    "IPD013",
    "device-of-a-plain-module",
    "nn.Module has no `device`: its parameters may be on several. Reading it raises AttributeError.",
)
def module_device(names: Names) -> Iterator[Problem]:
    plain = {cls.name for cls in names.modules if not _knows_device(names, cls)}
    for node in names.nodes:
        if not (isinstance(node, ast.Attribute) and node.attr == "device" and isinstance(node.ctx, ast.Load)):
            continue
        if isinstance(node.value, ast.Name) and node.value.id != "self" and _is_instance(names, node.value, plain):
            name = node.value.id
            yield Problem(node, f"{name} is an nn.Module, which has no `device`", _parameters_device(node, name))


def _knows_device(names: Names, cls: ast.ClassDef) -> bool:
    bases = [names.full(base) for base in cls.bases]
    return any(base != "torch.nn.Module" for base in bases) or any(
        (isinstance(node, ast.FunctionDef) and node.name in ("device", "__getattr__"))
        or (isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Store) and _last(node) == "device")
        or (isinstance(node, ast.Constant) and node.value == "device")
        for node in ast.walk(cls)
    )


def _last(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


def _is_instance(names: Names, node: ast.Name, classes: set[str]) -> bool:
    """Whether every binding of the name in its scope makes a plain module, and nobody gives it a `device`."""
    function = names.source.function(node)
    if function is not None and node.id in bindings.parameters(function):
        return False
    scope: Scope = function if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else names.tree
    found = bindings.of_name(scope, node.id) or bindings.of_name(names.tree, node.id)
    made = [_innermost(binding.value) for binding in found]
    plain = bool(made) and all(
        isinstance(call, ast.Call)
        and (getattr(call.func, "id", "") in classes or (names.is_module_call(call) and names.full(call.func) != ""))
        for call in made
    )
    return plain and not any(
        isinstance(other, ast.Attribute)
        and isinstance(other.ctx, ast.Store)
        and other.attr == "device"
        and getattr(other.value, "id", "") == node.id
        for other in names.nodes
    )


def _innermost(value: ast.expr | None) -> ast.expr | None:
    """``Net()`` in ``Net().to(device).eval()``."""
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in (*MOVES, "eval", "train", "half", "float")
    ):
        if not isinstance(value.func.value, ast.Call):
            break
        value = value.func.value
    return value


def _parameters_device(node: ast.Attribute, name: str) -> Change:
    def change(draft: Draft) -> object:
        return draft.replace(node, f"next({name}.parameters()).device")

    return change

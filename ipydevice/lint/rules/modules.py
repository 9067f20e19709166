"""Classes of nn.Module, and what is done with their instances."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ipydevice.diagnose import bindings
from ipydevice.fixes.edits import Draft
from ipydevice.lint.names import Names, Scope
from ipydevice.lint.rule import Change, Problem, rule

_MOVES = ("to", "cuda", "cpu", "xpu", "to_empty")
_STATE = re.compile(r"init.*(hidden|state|memory|carry)|(hidden|state).*init|zero_state|initial_state", re.IGNORECASE)
_SHAPED = ("shape", "size", "dtype", "device", "dim", "ndim", "numel", "new_zeros")


@rule(
    "IPD003",
    "optimizer-before-move",
    "An optimizer built before the model moves keeps what it has made of the parameters (state, flattened copies) "
    "where they were; PyTorch's documentation asks for the move first.",
)
def optimizer_before_move(names: Names) -> Iterator[Problem]:
    for scope in names.scopes:
        own = [node for node in bindings.own_nodes(scope) if isinstance(node, (ast.Assign, ast.Expr))]
        built: dict[str, ast.Call] = {}
        for statement in own:
            call = statement.value
            if isinstance(call, ast.Call) and names.called(call).startswith("torch.optim."):
                for model in _models(call):
                    built.setdefault(model, call)
                continue
            moved = _moved(statement)
            if moved in built and not _rebuilt(own, statement, moved):
                yield Problem(
                    built.pop(moved),
                    f"optimizer built before `{names.source.segment(statement)}`; move {moved} first",
                )
            for name in _assigned(statement):
                built.pop(name, None)


def _models(call: ast.Call) -> Iterator[str]:
    """``model`` in ``Adam(model.parameters())``; lists of groups too."""
    for node in ast.walk(call):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parameters":
            yield (
                ast.unparse(node.func.value).partition(".")[0]
                if "." not in ast.unparse(node.func.value)
                else ast.unparse(node.func.value)
            )


def _moved(statement: ast.Assign | ast.Expr) -> str:
    """``model`` in ``model.to(device)`` and ``model = model.cuda()``; "" for another statement."""
    call = statement.value
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _MOVES):
        return ""
    if (
        call.func.attr == "to"
        and call.args
        and re.search(r"float|half|dtype|double|channels", ast.unparse(call.args[0]))
    ):
        return ""
    if call.func.attr == "to" and not call.args and not any(k.arg == "device" for k in call.keywords):
        return ""
    if call.func.attr == "cpu":
        return ""  # moved home to be saved
    name = ast.unparse(call.func.value)
    if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) != name:
        return ""
    return name


def _assigned(statement: ast.Assign | ast.Expr) -> list[str]:
    if not isinstance(statement, ast.Assign) or _moved(statement):
        return []
    return [ast.unparse(target) for target in statement.targets]


def _rebuilt(own: list[ast.Assign | ast.Expr], after: ast.stmt, model: str) -> bool:
    """Whether another optimizer of this model is built below the move."""
    return any(
        statement.lineno > after.lineno
        and isinstance(statement.value, ast.Call)
        and model in list(_models(statement.value))
        for statement in own
    )


@rule(
    "IPD004",
    "tensor-made-in-forward",
    "A factory without device= makes its tensor on the host (or the default device) on every call, whatever the "
    "device of the model and its input.",
)
def made_in_forward(names: Names) -> Iterator[Problem]:
    for cls in names.modules:
        for method in names.methods(cls):
            if method.name != "forward" and not method.name.startswith("forward_"):
                continue
            for node in _own_calls(names, method):
                if names.is_fresh(node) and not _placed_later(names, method, node):
                    shown = names.source.segment(node.func)
                    yield Problem(
                        node, f"`{shown}(...)` in {method.name}() has no device=", _on_input(names, method, node)
                    )


def _own_calls(names: Names, function: ast.FunctionDef) -> list[ast.Call]:
    return [node for node in bindings.own_nodes(function) if isinstance(node, ast.Call)]


def _placed_later(names: Names, scope: Scope, node: ast.Call) -> bool:
    """Whether the new tensor is moved, is an index, or never meets others."""
    child: ast.AST = node
    for up in names.source.ancestors(node):
        if isinstance(up, ast.Attribute) and up.value is child and up.attr in _HARMLESS:
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
        (isinstance(use, ast.Attribute) and use.attr in _HARMLESS and getattr(use.value, "id", "") == name)
        or (isinstance(use, ast.Subscript) and name in _names_in(use.slice))
        or (isinstance(use, ast.Call) and name in [getattr(arg, "id", "") for arg in use.args] and _is_own(use))
        for use in ast.walk(scope)
    )


_HARMLESS = ("to", "cuda", "cpu", "type_as", "xpu", "tolist", "item", "numpy", "shape", "size", "numel", "storage")


def _is_own(call: ast.Call) -> bool:
    """A call that may move its argument: of a function of the user's."""
    return isinstance(call.func, ast.Name)


def _names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _on_input(names: Names, method: ast.FunctionDef, node: ast.Call) -> Change | None:
    """``device=x.device``, of the first input that is surely a tensor and still the one given."""
    for name in bindings.parameters(method)[1:]:
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
    "IPD005",
    "tensor-attribute-not-registered",
    "Only parameters and buffers follow the module when it is moved; a tensor kept as a plain attribute stays behind.",
)
def plain_attribute(names: Names) -> Iterator[Problem]:
    for cls in names.modules:
        if _moves_itself(names, cls):
            continue
        for method in names.methods(cls):
            if method.name != "__init__":
                continue
            for node in bindings.own_nodes(method):
                match node:
                    case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                        fresh = value if isinstance(value, ast.Call) and names.is_fresh(value) else None
                        if fresh is not None and _met_in_forward(names, cls, name) and not _set_again(names, cls, name):
                            yield Problem(
                                node,
                                f"self.{name} is a plain tensor: it stays behind when the module moves",
                                _registered(names, node, name),
                            )


def _moves_itself(names: Names, cls: ast.ClassDef) -> bool:
    return any(method.name in ("_apply", "to", "cuda") for method in names.methods(cls))


def _set_again(names: Names, cls: ast.ClassDef, name: str) -> bool:
    found = bindings.of_attribute(cls, name)
    return len(found) > 1


def _met_in_forward(names: Names, cls: ast.ClassDef, name: str) -> bool:
    """Whether a method uses the attribute as it is: not moved there, not only asked for its shape."""
    used = False
    for method in names.methods(cls):
        if method.name == "__init__":
            continue
        for node in ast.walk(method):
            if isinstance(node, ast.Attribute) and node.attr == name and getattr(node.value, "id", "") == "self":
                up = names.source.parent(node)
                if isinstance(up, ast.Attribute) and up.attr in _HARMLESS:
                    return False
                if isinstance(up, ast.Call) and _is_own(up):
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
    for cls in names.modules:
        if _moves_itself(names, cls):
            continue
        for method in names.methods(cls):
            if method.name != "__init__":
                continue
            for node in bindings.own_nodes(method):
                match node:
                    case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                        kind = _container_of_modules(names, value) or _filled(names, method, name, value)
                        if kind and not _known_elsewhere(names, cls, name, node):
                            yield Problem(
                                node,
                                f"self.{name} is a plain {'dict' if kind == 'ModuleDict' else 'list'} of modules: "
                                f"use nn.{kind}",
                                _wrapped(names, value, kind) if _container_of_modules(names, value) else None,
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
    for call in _own_calls(names, method):
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
    "IPD009",
    "hidden-state-on-host",
    "A hidden state made without device= is on the host; the cell it is given to is where the model is.",
)
def hidden_state(names: Names) -> Iterator[Problem]:
    for cls in names.modules:
        for method in names.methods(cls):
            if not _STATE.search(method.name):
                continue
            for node in _own_calls(names, method):
                if names.is_fresh(node) and not _placed_later(names, method, node):
                    yield Problem(
                        node,
                        f"`{names.source.segment(node.func)}(...)` in {method.name}() has no device=",
                        _with_device(node, "next(self.parameters()).device"),
                    )


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
        and value.func.attr in (*_MOVES, "eval", "train", "half", "float")
    ):
        if not isinstance(value.func.value, ast.Call):
            break
        value = value.func.value
    return value


def _parameters_device(node: ast.Attribute, name: str) -> Change:
    def change(draft: Draft) -> object:
        return draft.replace(node, f"next({name}.parameters()).device")

    return change

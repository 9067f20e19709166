"""Where names and attributes get their values, by syntax alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from ipydevice.diagnose.source import FunctionNode, Source, once_a_node

Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, *COMPREHENSIONS)

_Match = Callable[[ast.expr], bool]  # a test of assignment targets
BindingHow = Literal["assignment", "loop", "with", "import", "item", "define"]


@dataclass(slots=True)
class Binding:
    """One place that gives a name, attribute or item its value."""

    node: ast.stmt | ast.comprehension | ast.NamedExpr
    how: BindingHow
    value: ast.expr | None = None  # the matching right-hand side; the iterable of a loop
    part: int | None = None  # which element of `value` it is, where an unpacking tells
    method: FunctionNode | None = None  # for attributes: the method that sets it

    @property
    def line(self) -> int:
        return self.value.lineno if isinstance(self.node, ast.comprehension) and self.value else self.node.lineno  # type: ignore[union-attr]


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run in a scope itself, not in functions, classes or comprehensions inside it, in text order."""
    if isinstance(scope, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield from _own_nodes(scope)
    else:
        yield scope
        for node in ast.iter_child_nodes(scope):
            yield from _running(node)


@once_a_node
def _own_nodes(scope: ast.AST) -> list[ast.AST]:
    return [node for statement in getattr(scope, "body", []) for node in _running(statement)]


def _running(top: ast.AST) -> Iterator[ast.AST]:
    stack = [top]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _SCOPES):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def of_name(scope: ast.AST, name: str) -> list[Binding]:
    """The bindings of `name` in a module or function, in text order."""
    return [binding for node in own_nodes(scope) for binding in _bind_name(node, name)]


def made(scope: ast.AST, name: str) -> list[Binding]:
    """The bindings that give `name` a value of its own: ``total += x`` changes the one that is there, where it is."""
    return [binding for binding in of_name(scope, name) if not isinstance(binding.node, ast.AugAssign)]


def _bind_name(node: ast.AST, name: str) -> Iterator[Binding]:
    def is_name(target: ast.expr) -> bool:
        return isinstance(target, ast.Name) and target.id == name

    match node:
        case ast.Import() | ast.ImportFrom():
            if any((alias.asname or alias.name.split(".")[0]) == name for alias in node.names):
                yield Binding(node, "import")
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if node.name == name:
            yield Binding(node, "define")
        case _:
            yield from _bind(node, is_name)


def _bind(node: ast.AST, matches: _Match) -> Iterator[Binding]:
    match node:
        case ast.Assign():
            for target in node.targets:
                yield from _unpack(node, target, node.value, matches, "assignment")
        case ast.AnnAssign(value=ast.expr()) | ast.AugAssign() if matches(node.target):
            yield Binding(node, "assignment", node.value)
        case ast.For() | ast.AsyncFor():
            yield from _unpack(node, node.target, node.iter, matches, "loop")
        case ast.With() | ast.AsyncWith():
            for item in node.items:
                if item.optional_vars is not None:
                    yield from _unpack(node, item.optional_vars, item.context_expr, matches, "with")
        case ast.NamedExpr() if matches(node.target):
            yield Binding(node, "assignment", node.value)


def _unpack(
    node: ast.stmt | ast.comprehension, target: ast.expr, given: ast.expr, matches: _Match, how: BindingHow
) -> Iterator[Binding]:
    if matches(target):
        yield Binding(node, how, given)
        return
    if isinstance(target, ast.Starred):
        yield from _unpack(node, target.value, given, matches, how)
        return
    if not isinstance(target, (ast.Tuple, ast.List)):
        return
    for position, part in enumerate(target.elts):
        paired = given
        known: int | None = position
        if how == "assignment" and isinstance(given, (ast.Tuple, ast.List)) and len(given.elts) == len(target.elts):
            paired, known = given.elts[position], None
        for found in _unpack(node, part, paired, matches, how):
            found.part = known if found.part is None else found.part
            yield found


def of_comprehension(comp: Comprehension, name: str) -> Binding | None:
    """The generator of a comprehension that gives `name` its values."""

    def is_name(target: ast.expr) -> bool:
        return isinstance(target, ast.Name) and target.id == name

    for generator in comp.generators:
        for found in _unpack(generator, generator.target, generator.iter, is_name, "loop"):
            return found
    return None


def of_attribute(cls: ast.ClassDef, name: str) -> list[Binding]:
    """Where the methods of a class, or its body, set attribute `name` of the instance."""
    found: list[Binding] = []
    for statement in cls.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            params = parameters(statement)
            if params:
                found += _set_in_method(statement, params[0], name)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            found += list(_bind_name(statement, name))
    return found


def _set_in_method(method: FunctionNode, me: str, name: str) -> Iterator[Binding]:
    def is_attribute(target: ast.expr) -> bool:
        match target:
            case ast.Attribute(value=ast.Name(id=base), attr=attr):
                return base == me and attr == name
            case ast.Subscript(value=inner):  # self.cache[key] = ...
                return is_attribute(inner)
        return False

    for node in own_nodes(method):
        for binding in _bind(node, is_attribute):
            binding.method = method
            yield binding
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver, attr=verb)) as call):
                given: ast.expr | None = None
                if verb in ("append", "add", "appendleft", "insert", "extend", "update") and is_attribute(receiver):
                    given = call.args[-1] if call.args else None
                elif (
                    verb in ("register_buffer", "register_parameter", "add_module", "__setattr__")
                    and len(call.args) > 1
                ):
                    key = call.args[0]
                    given = call.args[1] if isinstance(key, ast.Constant) and key.value == name else None
                if given is not None:
                    yield Binding(node, "item", given, method=method)
            case ast.Expr(value=ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=key), given])) if (
                key == name
            ):
                yield Binding(node, "assignment", given, method=method)


def of_target(scope: ast.AST, text: str) -> list[Binding]:
    """Where ``obj.attr = ...`` or ``d["key"] = ...`` with exactly this (normalised) text is assigned or filled."""

    def is_target(target: ast.expr) -> bool:
        return isinstance(target, (ast.Attribute, ast.Subscript)) and ast.unparse(target) == text

    found: list[Binding] = []
    for node in own_nodes(scope):
        found += list(_bind(node, is_target))
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver, attr="append"), args=[given])):
                if ast.unparse(receiver) == text:
                    found.append(Binding(node, "item", given))
    return found


def put_into(node: ast.AST, name: str, is_owner: Callable[[ast.expr], bool]) -> ast.expr | None:
    """What a statement sets as attribute or submodule `name` of an owner.

    ``net.fc = x``, ``net[2] = x``, ``setattr(net, "fc", x)``, ``net.add_module("fc", x)``, ``blocks.append(x)``
    """
    match node:
        case ast.Assign(value=given) | ast.AugAssign(value=given) | ast.AnnAssign(value=ast.expr() as given):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                match target:
                    case ast.Attribute(value=owner, attr=attr) if attr == name and is_owner(owner):
                        return given
                    case ast.Subscript(value=owner, slice=ast.Constant(value=key)) if str(key) == name:
                        if is_owner(owner):
                            return given
        case ast.Expr(value=ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=key), given])):
            return given if key == name and is_owner(owner) else None
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=verb), args=[*rest, given])):
            told = rest[0].value if len(rest) == 1 and isinstance(rest[0], ast.Constant) else None
            named = verb in ("add_module", "register_module") and told == name
            if (named or (verb == "append" and name.isdigit() and not rest)) and is_owner(owner):
                return given
    return None


def fillings(scope: ast.AST, name: str) -> list[Binding]:
    """Where a list, dict or deque of this name is filled, in functions inside too: ``xs.append(x)``, ``d[k] = x``."""
    found: list[Binding] = []
    for node in ast.walk(scope):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=filled), attr=verb), args=[*_, given])):
                if filled == name and verb in ("append", "appendleft", "add", "insert", "extend", "update", "put"):
                    found.append(Binding(node, "item", given))
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=filled))], value=given) if filled == name:
                found.append(Binding(node, "item", given))
    return sorted(found, key=lambda binding: binding.line)


def is_empty(expr: ast.expr | None) -> bool:
    """Whether an expression makes a container with nothing in it: ``[]``, ``{}``, ``deque(maxlen=4)``."""
    match expr:
        case ast.List(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(func=ast.Name(id="defaultdict") | ast.Attribute(attr="defaultdict")):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[]):
            return name in ("list", "dict", "set", "deque", "OrderedDict", "Queue")
    return False


def parameters(function: FunctionNode) -> list[str]:
    """Names of all parameters, in order; ``*args`` and ``**kwargs`` last."""
    args = function.args
    names = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return names + [arg.arg for arg in (args.vararg, args.kwarg) if arg is not None]


def default_of(function: FunctionNode, name: str) -> ast.expr | None:
    """The default value of a parameter."""
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    for arg, default in zip(reversed(positional), reversed(args.defaults), strict=False):
        if arg.arg == name:
            return default
    for arg, kw_default in zip(args.kwonlyargs, args.kw_defaults, strict=False):
        if arg.arg == name:
            return kw_default
    return None


def argument_for(call: ast.Call, function: FunctionNode, name: str, bound: bool) -> ast.expr | None:
    """The expression that a call gives for parameter `name`; `bound` when the first parameter is not written."""
    for kw in call.keywords:
        if kw.arg == name:
            return kw.value
    args = function.args
    positional = [arg.arg for arg in (*args.posonlyargs, *args.args)][1 if bound else 0 :]
    if name in positional:
        position = positional.index(name)
        before = call.args[: position + 1]
        if len(before) > position and not any(isinstance(arg, ast.Starred) for arg in before):
            return before[position]
    return None


def returns(function: FunctionNode) -> list[ast.expr]:
    """The expressions that a function returns or yields, in text order."""
    if isinstance(function, ast.Lambda):
        return [function.body]
    found = []
    for node in own_nodes(function):
        if isinstance(node, (ast.Return, ast.Yield)) and node.value is not None:
            found.append(node.value)
    return found


def in_force(found: list[Binding], source: Source, until: ast.AST | None) -> Binding | None:
    """The last binding of a text that has run to its end, or of one that has run to a node."""
    if until is None or not found:
        return found[-1] if found else None
    return latest(found, source, until)


_MOVERS = ("to", "cuda", "cpu", "_apply", "half", "float", "double")


def most_telling(found: list[Binding]) -> Binding | None:
    """Of the places that set an attribute: a real value rather than None or the same one moved, the last one made."""
    found = [binding for binding in found if getattr(binding.method, "name", "") not in _MOVERS] or found
    found = [binding for binding in found if not isinstance(binding.node, ast.AugAssign)] or found
    real = [binding for binding in found if not isinstance(binding.value, ast.Constant) and binding.value is not None]
    empty = (ast.List, ast.Dict, ast.Set)
    filled = [
        binding
        for binding in real
        if not (
            isinstance(binding.value, empty) and not getattr(binding.value, "elts", getattr(binding.value, "keys", ()))
        )
        and not (
            isinstance(binding.value, ast.Call)
            and not binding.value.args
            and isinstance(binding.value.func, ast.Name)
            and binding.value.func.id in ("list", "dict", "defaultdict", "OrderedDict")
        )
    ]
    chosen = filled or real or found
    return chosen[-1] if chosen else None


def is_memoised(function: FunctionNode) -> bool:
    """Whether a function gives back what it made in an earlier call: by `functools.cache`, or by a table of its own."""
    if isinstance(function, ast.Lambda):
        return False
    if any("cache" in ast.unparse(decorator) for decorator in function.decorator_list):
        return True
    kept = {
        ast.unparse(target.value)
        for node in own_nodes(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Subscript)
    }
    tests = [ast.unparse(node.test) for node in own_nodes(function) if isinstance(node, ast.If)]
    return any(test.endswith((f" in {name}", f"{name} is None")) for test in tests for name in kept)


def handles_devices(function: FunctionNode) -> bool:
    """Whether a function moves things, or is told a device: then moving what it hands on is its job."""
    if any(re.fullmatch(r"dev(ice)?|to_device|target_device", name) for name in parameters(function)):
        return True
    calls_of = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    return any(isinstance(call.func, ast.Attribute) and _may_move(call, call.func.attr) for call in calls_of)


def _may_move(call: ast.Call, verb: str) -> bool:
    """``x.cuda()`` and ``x.to(device)``, but not ``x.to(torch.float16)`` or ``x.to(dtype)``."""
    if verb != "to" or not call.args:
        return verb in ("to", "cuda")
    return not re.search(r"dtype|torch\.(float|double|half|bfloat|int|long|bool|complex)", ast.unparse(call.args[0]))


def calls(tree: ast.AST, name: str) -> list[ast.Call]:
    """Calls of a function, method or class by its last name, in text order."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            func = node.func
            if (isinstance(func, ast.Name) and func.id == name) or (
                isinstance(func, ast.Attribute) and func.attr == name
            ):
                found.append(node)
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def latest(found: list[Binding], source: Source, use: ast.AST) -> Binding | None:
    """The binding in force where `use` stands: the last one above it, or in a loop around both the last of all."""
    around = [use, *source.ancestors(use)]
    above = [
        binding
        for binding in found
        if (binding.node not in around and _is_above(binding, use))
        or (binding.how in ("loop", "with") and binding.node in around and binding.value not in around)
    ]
    if above:
        return above[-1]
    loops = [node for node in around if isinstance(node, (ast.For, ast.AsyncFor, ast.While))]
    later = [binding for binding in found if any(loop in source.ancestors(binding.node) for loop in loops)]
    return later[-1] if later else None


def _is_above(binding: Binding, use: ast.AST) -> bool:
    """Whether it comes first in the text; in one line ``x = 1; y = x; x = 2`` the columns tell."""
    line = getattr(use, "lineno", 0)
    if binding.line != line or isinstance(binding.node, (ast.NamedExpr, ast.comprehension)):
        return binding.line <= line
    return binding.node.col_offset <= getattr(use, "col_offset", 0)

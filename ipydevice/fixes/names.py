"""Which names a piece of code binds, reads and changes, told from its text alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from ipydevice.diagnose.source import once_a_node
from ipydevice.language import Sentence

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

# Calls that read their arguments and leave them as they are.
_HARMLESS = frozenset(
    [
        "print",
        "len",
        "range",
        "enumerate",
        "zip",
        "isinstance",
        "issubclass",
        "type",
        "repr",
        "str",
        "int",
        "float",
        "bool",
        "list",
        "tuple",
        "dict",
        "set",
        "sorted",
        "min",
        "max",
        "sum",
        "abs",
        "any",
        "all",
        "display",
        "getattr",
        "hasattr",
        "id",
        "format",
        "round",
        "iter",
        "copy",
        "deepcopy",
        "clone",
        "map",
        "filter",
        "reversed",
    ]
)
# Libraries whose functions leave their arguments alone, but for those that end in "_".
_LIBRARIES = frozenset(
    [
        "torch",
        "th",
        "nn",
        "F",
        "np",
        "numpy",
        "plt",
        "math",
        "os",
        "sys",
        "time",
        "random",
        "pd",
        "sns",
        "tqdm",
        "json",
        "re",
    ]
)
# Methods that change nothing of the object they are called on.
_READING = frozenset(
    [
        "size",
        "dim",
        "numel",
        "item",
        "tolist",
        "detach",
        "clone",
        "numpy",
        "mean",
        "sum",
        "std",
        "max",
        "min",
        "view",
        "reshape",
        "unsqueeze",
        "squeeze",
        "shape",
        "parameters",
        "named_parameters",
        "buffers",
        "named_buffers",
        "modules",
        "named_modules",
        "children",
        "state_dict",
        "items",
        "keys",
        "values",
        "get",
        "cpu",
        "abs",
        "pow",
        "format",
        "join",
        "split",
        "float",
        "long",
        "transpose",
        "permute",
        "argmax",
        "softmax",
        "exp",
        "log",
        "matmul",
        "copy",
    ]
)
# What must not be done twice to the same object.
REPEATS_BADLY: dict[str, Sentence] = {
    "register_hook": "adds its hook a second time",
    "register_forward_hook": "adds its hook a second time",
    "register_forward_pre_hook": "adds its hook a second time",
    "register_full_backward_hook": "adds its hook a second time",
    "register_backward_hook": "adds its hook a second time",
    "append": "appends once more",
    "extend": "appends once more",
    "insert": "inserts once more",
    "add_param_group": "adds its group a second time",
    "step": "makes another step",
    "backward": "adds to the gradients once more",
    "pop": "takes another item out",
}


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that run as part of `nodes`: a nested function's decorators and defaults, not its body."""
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            stack += [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)][::-1]
        elif isinstance(node, ast.Lambda):
            stack += [*node.args.defaults, *filter(None, node.args.kw_defaults)][::-1]
        elif not isinstance(node, (ast.Name, ast.Constant)):
            stack += _children(node)[::-1]


def _children(node: ast.AST) -> list[ast.AST]:
    """As ast.iter_child_nodes, whose two generators take twice the time."""
    found: list[ast.AST] = []
    for name in node._fields:
        held = getattr(node, name, None)
        if isinstance(held, ast.AST):
            found.append(held)
        elif isinstance(held, list):
            found += [part for part in held if isinstance(part, ast.AST)]
    return found


def bound(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that running `nodes` binds in their own scope."""
    return set().union(*(bound_by(node) for node in nodes))


@once_a_node
def bound_by(top: ast.AST) -> frozenset[str]:
    """The same of one node."""
    found: set[str] = set()
    inner: set[int] = set()
    nodes = list(own_nodes([top]))
    for node in nodes:
        if isinstance(node, _COMPREHENSIONS):
            for generator in node.generators:
                inner |= {id(n) for n in ast.walk(generator.target)}
        elif isinstance(node, ast.ClassDef):
            inner |= {id(n) for n in own_nodes(node.body)} - {id(node)}
    for node in nodes:
        if id(node) in inner:
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif (isinstance(node, ast.ExceptHandler) and node.name) or (
            isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name
        ):
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
    return frozenset(found)


def read(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that running `nodes` reads, nested functions' bodies left out."""
    return set().union(*(_read(node) for node in nodes))


@once_a_node
def _read(node: ast.AST) -> frozenset[str]:
    return frozenset(n.id for n in own_nodes([node]) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def parameters(function: ast.AST) -> list[str]:
    """The parameters of a function or lambda, ``*args`` included."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return []
    args = function.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]
    return [a.arg for a in every]


def receiver(method: ast.AST) -> str:
    """What a method calls its object: its first parameter, "self" for most."""
    return next(iter(parameters(method)), "self")


@once_a_node
def free(function: ast.AST) -> frozenset[str]:
    """Names of the outer scope that a function, lambda or class body reads when it runs, however deep."""
    body: list[ast.AST]
    if isinstance(function, ast.Lambda):
        body = [function.body]
    elif isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        body = list(function.body)
    else:
        return frozenset()
    nodes = list(own_nodes(body))
    inner = {n for node in nodes if isinstance(node, _SCOPES) for n in free(node)}
    declared = {n for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for n in node.names}
    local = set() if isinstance(function, ast.ClassDef) else (bound(body) | set(parameters(function))) - declared
    return frozenset((read(body) | inner) - local)


def same(one: ast.AST, other: ast.AST) -> bool:
    """Are two trees equal but for positions?  As ast.dump of both tells, in a fraction of its time."""
    pairs: list[tuple[object, object]] = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if left is right:
            continue
        if type(left) is not type(right):
            return False
        if isinstance(left, ast.AST):
            pairs += [(getattr(left, name, None), getattr(right, name, None)) for name in left._fields]
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif repr(left) != repr(right):  # 0.0 and -0.0 are equal, nan is not
            return False
    return True


def root(node: ast.AST) -> str | None:
    """The name at the bottom of ``name.a[0].b()``."""
    while True:
        match node:
            case ast.Attribute() | ast.Subscript() | ast.Starred():
                node = node.value
            case ast.Call():
                node = node.func
            case ast.Name():
                return node.id
            case _:
                return None


def last_name(node: ast.AST) -> str:
    """``b`` of ``a.b`` and of ``b``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_constant(node: ast.AST | None) -> bool:
    """A number, text or a tuple, list or dict of them: the same on every run."""
    try:
        ast.literal_eval(node)  # type: ignore[arg-type]
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False
    return True


@dataclass
class Effects:
    """What running a cell does to the names of the workspace."""

    tree: ast.Module
    definitions: dict[str, ast.AST] = field(default_factory=dict)  # def and class statements by name

    def __post_init__(self) -> None:
        for node in self.nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.definitions.setdefault(node.name, node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.definitions.setdefault(target.id, node.value)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """What runs with the cell, the bodies of its functions left out."""
        return list(own_nodes(self.tree.body))

    @cached_property
    def binds(self) -> set[str]:
        return bound(self.tree.body)

    @cached_property
    def reads(self) -> set[str]:
        """Read while the cell runs, without what its functions read when called."""
        classes = {n for node in self.nodes if isinstance(node, ast.ClassDef) for n in read(node.body)}
        return read(self.tree.body) | classes

    @cached_property
    def values(self) -> set[str]:
        """Names bound to something new on every run: no imports, definitions or constants."""
        found: set[str] = set()
        for statement in self.tree.body:
            if isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and (
                is_constant(statement.value) or isinstance(statement.value, ast.Lambda)
            ):
                continue
            found |= bound([statement])
        return found

    @cached_property
    def changes(self) -> set[str]:
        """Names whose objects the cell may change in place."""
        found: set[str] = set()
        for node in self.nodes:
            names: list[str | None] = []
            if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
                names = [root(node)]
            elif isinstance(node, ast.AugAssign):
                names = [root(node.target)]
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names = [root(d) for d in node.decorator_list if isinstance(d, ast.Attribute)]  # "@heads.register"
            elif isinstance(node, ast.Call):
                called = last_name(node.func)
                if isinstance(node.func, ast.Attribute) and called not in _READING:
                    names = [root(node.func.value)]
                elif isinstance(node.func, ast.Name):
                    names = [node.func.id]  # calling a model may change its buffers
                library = root(node.func) in _LIBRARIES and not called.endswith("_")
                if called not in _HARMLESS and called not in _READING and called[:1].islower() and not library:
                    names += [root(a) for a in (*node.args, *(k.value for k in node.keywords))]
            found |= {name for name in names if name is not None}
        return found

    @cached_property
    def unsafe(self) -> list[tuple[str, str, ast.Call | ast.AugAssign]]:
        """(name, method, call) that must not be repeated on the same object."""
        found: list[tuple[str, str, ast.Call | ast.AugAssign]] = []
        for node in self.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in REPEATS_BADLY:
                name = root(node.func.value)
                if name:
                    found.append((name, node.func.attr, node))
        return found

"""Lines of the cells in which a tensor meets a module or another tensor on another device.

Only names whose value cannot have changed since the line ran are taken at their word, and
only lines outside functions and ``try``.  Such a line cannot have worked with these values, so
in a program that is right there is none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from ipydevice.language import say
from ipydevice.listing.odd import has_device_map, moved_container, wants_split
from ipydevice.listing.oddity import Clue, Oddity
from ipydevice.listing.survey import Many, One, Survey
from ipydevice.placement import FactReader, inside, is_tensor
from ipydevice.placement.kinds import class_name, home_of

_MOVERS = frozenset({"to", "cuda", "cpu", "xpu", "npu", "half", "double", "float", "to_empty", "share_memory_"})
# Methods whose result lies where the tensor lies.
_KEEPERS = frozenset({
    "view", "reshape", "unsqueeze", "squeeze", "permute", "transpose", "flatten", "contiguous", "clone", "detach",
    "long", "expand", "repeat", "t", "unflatten", "flip", "softmax", "sigmoid", "exp", "log",
})  # fmt: skip
_APART = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Try, ast.TryStar,
          ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)  # fmt: skip
_FUNCTIONAL = ("F.", "nn.functional.", "torch.nn.functional.")
HOST = "cpu"


def remarks(
    trees: Sequence[ast.Module], names: Mapping[str, Survey], reader: FactReader
) -> Iterator[tuple[str, Oddity]]:
    """Names with what is odd about them; each name once."""
    told: set[str] = set()
    for name, oddity in _Lines(trees, names, reader).meetings():
        if name not in told:
            told.add(name)
            yield name, oddity


class _Lines:
    """The nodes of all cells in the order in which they run, with what each name's last change is."""

    def __init__(self, trees: Sequence[ast.Module], names: Mapping[str, Survey], reader: FactReader) -> None:
        self._names = names
        self._reader = reader
        self._nodes = [node for tree in trees for statement in tree.body for node in _in_order(statement)]
        self._changed = {
            name: i for i, node in enumerate(self._nodes) for name in (*_changed_by(node), *self._handed_over(node))
        }

    def _handed_over(self, node: ast.AST) -> Iterator[str]:
        """Modules and containers given to a function or a ``with``, which may have moved them there and back."""
        match node:
            case ast.Call(func=function):
                known = self._names.get(function.id) if isinstance(function, ast.Name) else None
                if known is not None or ast.unparse(function).startswith(_FUNCTIONAL):
                    return
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
            case ast.With() | ast.AsyncWith():  # visited after its body, at the exit
                given = [inner for item in node.items for inner in ast.walk(item.context_expr)]  # type: ignore[misc]
            case _:
                return
        for argument in given:
            if isinstance(argument, ast.Name) and isinstance(self._names.get(argument.id), Many):
                yield argument.id

    def meetings(self) -> Iterator[tuple[str, Oddity]]:
        for index, node in enumerate(self._nodes):
            if isinstance(node, ast.Call):
                yield from self._call(node, index)
            elif isinstance(node, ast.BinOp) and not self._joins(node, index):
                yield from self._together([node.left, node.right], index)

    def _joins(self, node: ast.BinOp, index: int) -> bool:
        """Whether an operator stands between containers, which are joined and not added."""
        return any(isinstance(self._at(side, index), Many) for side in (node.left, node.right))

    def _call(self, node: ast.Call, index: int) -> Iterator[tuple[str, Oddity]]:
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        called = node.func
        match called:  # a metric is asked by ``metric.update(outputs, labels)``
            case ast.Attribute(value=ast.Name() as owner, attr="update" | "forward"):
                called = owner
            case ast.Attribute():
                if ast.unparse(called).startswith(_FUNCTIONAL):
                    yield from self._together(arguments, index)
                return
        module = self._at(called, index)
        if not isinstance(module, Many) or module.kind != "module" or moves_inputs(module):
            return
        if not module.counts:
            yield from self._together(arguments, index)
            return
        wanted = module.device
        if len(module.counts) != 1 or wanted == "meta":
            return
        for position, argument in enumerate(arguments):
            device = self._device(argument, index)
            if device in (None, wanted, "meta") or (position > 0 and self._may_stay(argument, module)):
                continue
            name = _root(argument)
            if wanted == HOST:
                said = (
                    say("{name} on {device}", name=name, device=device)
                    if name
                    else say("a tensor on {device}", device=device)
                )
                code = f"{module.name}.to({device!r})"
                clue = Clue("model_not_moved", module.name, HOST, device or "")
                yield (
                    module.name,
                    Oddity(say("on {host}, gets {said}: {code}", host=HOST, said=said, code=code), code, clues=(clue,)),
                )
            elif name is not None and device == HOST:
                yield (
                    name,
                    self._move(
                        name,
                        wanted,
                        say("on {host}, passed to {model} on {wanted}", host=HOST, model=module.name, wanted=wanted),
                    ),
                )

    def _may_stay(self, argument: ast.expr, module: Many) -> bool:
        """Whether an argument behind the first may be wanted on the host: lengths, indices, masks for indexing."""
        found = self._names.get(argument.id) if isinstance(argument, ast.Name) else None
        if home_of(module.value) == "torch" or not isinstance(found, One):
            return False
        return len(found.facts.shape or ()) == 1 and not (found.facts.dtype or "").startswith(("float", "bfloat"))

    def _together(self, operands: Sequence[ast.expr], index: int) -> Iterator[tuple[str, Oddity]]:
        """What lies on the host while another operand of the same call lies on an accelerator."""
        devices = [(operand, self._device(operand, index)) for operand in operands]
        accelerator = next((device for _, device in devices if device not in (None, HOST, "meta")), None)
        for operand, device in devices:
            name = _root(operand)
            if accelerator is not None and device == HOST and name is not None:
                yield (
                    name,
                    self._move(
                        name,
                        accelerator,
                        say("on {host}, meets a tensor on {accelerator}", host=HOST, accelerator=accelerator),
                    ),
                )

    def _move(self, name: str, device: str, odd: str) -> Oddity:
        """Move what the name holds; a list or dictionary has no ``.to()``."""
        found = self._names.get(name)
        clue = Clue("input_not_moved", name, HOST, device)
        if isinstance(found, One):
            moved = f"{name}.to({device!r})"
            return Oddity(f"{odd}: {moved}", f"{name} = {moved}", clues=(clue,))
        code = "" if found is None else moved_container(name, found.value, device)
        return Oddity(say("{odd}: move its tensors to {device}", odd=odd, device=device), code, clues=(clue,))

    def _at(self, node: ast.expr, index: int) -> Survey | None:
        """What a name holds, if it held the same when the line ran."""
        if not isinstance(node, ast.Name) or self._changed.get(node.id, -1) > index:
            return None
        return self._names.get(node.id)

    def _device(self, node: ast.expr, index: int) -> str | None:
        """Where the tensors of an expression lie; None where that is not sure, and for numbers."""
        match node:
            case ast.Name():
                return self._of_name(node, index)
            case ast.Starred(value=inner) | ast.Subscript(value=inner):
                return self._device(inner, index)
            case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _KEEPERS:
                return self._device(inner, index)
            case ast.Call(func=ast.Name() as function):
                module = self._at(function, index)
                if isinstance(module, Many) and module.kind == "module" and not moves_inputs(module):
                    return module.device if len(module.counts) == 1 else None
        return None

    def _of_name(self, node: ast.Name, index: int) -> str | None:
        found = self._at(node, index)
        if isinstance(found, One):
            return found.device if found.facts.shape else None  # a number with no dimensions may meet any device
        if found is None or found.kind != "container" or len(found.counts) != 1:
            return None
        sized = all(is_tensor(t) and self._reader.facts(t).shape for t in inside(found.value))
        return found.device if sized else None


def moves_inputs(module: Many) -> bool:
    """Whether a module brings its inputs to its device itself."""
    # DataParallel and DistributedDataParallel scatter (torch/nn/parallel).
    value = module.value
    return has_device_map(value) or class_name(type(value)).endswith("Parallel") or wants_split(value)


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is below it, in the order in which they are evaluated."""
    if isinstance(node, _APART):
        yield from _changes_inside(node)
        return
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        children = [child for child in children if child not in targets] + list(targets)
    for child in children:
        yield from _in_order(child)
    yield node


def _changes_inside(node: ast.AST) -> Iterator[ast.AST]:
    """From a part that is not read: what it may bind or move, and nothing else."""
    return (inner for inner in ast.walk(node) if any(_changed_by(inner)) and not isinstance(inner, ast.BinOp))


def _changed_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _MOVERS:
            root = _root(inner)
            if root is not None:
                yield root
        case ast.AugAssign(target=ast.Name(id=name)):
            yield name


def _root(node: ast.expr) -> str | None:
    """The name at the beginning of ``x``, ``x[0]``, ``x.view(-1)``, ``x.layers[2]``."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Starred(value=inner) | ast.Subscript(value=inner) | ast.Attribute(value=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case _:
                return None
    return node.id

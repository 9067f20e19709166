"""What is odd in the light of the cells' texts: a call, a literal, a loop.

The texts are parsed, never run.  What a name holds now may not be what it held at the call,
so a name counts only where nothing binds or moves it after the line in question.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ipydevice.listing.odd import has_device_map, wants_split
from ipydevice.listing.survey import Many, One, Survey
from ipydevice.placement.kinds import attributes, class_name

BIG = 64 * 2**20  # bytes: below, pinning the memory of a loader's tensors is not worth a word
_MOVERS = frozenset({"to", "cuda", "cpu", "xpu", "npu", "half", "double", "float"})
_SECOND_CARD = re.compile(r"[a-z]+:[1-9]\d*")
_INSIDE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(slots=True)
class _Text:
    """The statements of all cells at module level, in order, with what each binds and moves."""

    nodes: list[ast.AST] = field(default_factory=list)  # in the order of the text
    last_change: dict[str, int] = field(default_factory=dict)  # name -> index of the last node that binds or moves it


def remarks(everything: Sequence[Survey], cells: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Names with what is odd about them."""
    trees = [tree for tree in map(_parse, cells) if tree is not None]
    text = _read(trees)
    by_name = {found.name: found for found in everything}
    yield from _passed_from_host(text, by_name)
    yield from _alone_on_second_card(trees, by_name)
    yield from _not_pinned(trees, by_name)


def _parse(cell: str) -> ast.Module | None:
    """The tree of a cell; lines of magics and shell commands are left out."""
    lines = ["" if line.lstrip().startswith(("%", "!", "?")) else line for line in cell.splitlines()]
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _read(trees: Sequence[ast.Module]) -> _Text:
    text = _Text()
    for tree in trees:
        for statement in tree.body:
            for node in _outside_functions(statement):
                text.nodes.append(node)
                for name in _changed(node):
                    text.last_change[name] = len(text.nodes) - 1
    return text


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is below, children before parents as they run, functions and classes left out."""
    if isinstance(node, _INSIDE):
        return
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        children.sort(key=lambda child: child in (getattr(node, "targets", None) or [getattr(node, "target", None)]))
    for child in children:
        yield from _outside_functions(child)
    yield node


def _changed(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield node.id
    elif isinstance(node, ast.Call):
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in _MOVERS:
                yield name


def _passed_from_host(text: _Text, names: dict[str, Survey]) -> Iterator[tuple[str, str]]:
    """Host tensors that a line passes as they are to a module on an accelerator."""
    told: set[str] = set()
    for index, node in enumerate(text.nodes):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        module = names.get(node.func.id)
        if module is None or text.last_change.get(module.name, -1) > index:
            continue
        device = _takes_from(module)
        if device is None:
            continue
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            found = names.get(argument.id) if isinstance(argument, ast.Name) else None
            if not isinstance(found, One) or found.name in told or found.facts.shape in ((), None):
                continue
            if found.facts.device == "cpu" and text.last_change.get(found.name, -1) < index:
                told.add(found.name)
                yield found.name, f"on cpu, passed to {module.name} on {device}: {found.name}.to({device!r})"


def _takes_from(module: Survey) -> str | None:
    """The accelerator on which a module wants its inputs; None where it moves them itself or has no device."""
    if module.kind != "module" or not isinstance(module, Many) or len(module.counts) != 1:
        return None
    device = module.device
    if device in ("cpu", "meta") or has_device_map(module.value) or wants_split(module.value):
        return None
    # DataParallel and DistributedDataParallel scatter their inputs (torch/nn/parallel).
    return None if class_name(type(module.value)).endswith("Parallel") else device


def _alone_on_second_card(trees: Sequence[ast.Module], names: dict[str, Survey]) -> Iterator[tuple[str, str]]:
    """The one name on a card that one literal alone mentions, while all else is on another card of the kind."""
    by_device: dict[str, list[str]] = {}
    for found in names.values():
        for device in found.devices:
            by_device.setdefault(device, []).append(found.name)
    constants = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    literals = Counter(node.value for node in constants if isinstance(node.value, str))
    for device, holders in by_device.items():
        if len(holders) != 1 or not _SECOND_CARD.fullmatch(device) or literals[device] != 1:
            continue
        kind = device.partition(":")[0]
        others = [other for other in by_device if other != device and other.partition(":")[0] == kind]
        if len(others) == 1 and len(by_device[others[0]]) > 1:
            yield holders[0], f"alone on {device} by a literal, the rest on {others[0]}"


def _not_pinned(trees: Sequence[ast.Module], names: dict[str, Survey]) -> Iterator[tuple[str, str]]:
    """Loaders over big host tensors whose loop moves them to an accelerator without pinned memory."""
    accelerators = [device for found in names.values() for device in found.devices if device not in ("cpu", "meta")]
    if not accelerators:
        return
    for loop in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.For)):
        for name in [node.id for node in ast.walk(loop.iter) if isinstance(node, ast.Name)]:
            found = names.get(name)
            if found is None or found.kind != "loader" or not _moves(loop) or found.bytes < BIG:
                continue
            if set(found.devices) == {"cpu"} and attributes(found.value).get("pin_memory") is False:
                size = found.bytes // 2**20
                yield name, f"feeds {accelerators[0]} from {size:,} MiB of unpinned host memory: pin_memory=True"
                names = {other: one for other, one in names.items() if other != name}


def _moves(loop: ast.For) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda")
        for node in ast.walk(loop)
    )

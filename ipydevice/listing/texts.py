"""What is odd in the light of the cells' texts: a call, a literal, a loop. They are parsed, never run."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ipydevice import placement
from ipydevice.language import say
from ipydevice.listing import calls
from ipydevice.listing.oddity import Clue, Oddity
from ipydevice.listing.survey import Many, One, Survey
from ipydevice.placement import FactReader
from ipydevice.placement.kinds import attributes

BIG = 64 * 2**20  # bytes: below, pinning the memory of a loader's tensors is not worth a word
_SECOND_CARD = re.compile(r"[a-z]+:[1-9]\d*")


def remarks(everything: Sequence[Survey], cells: Sequence[str], reader: FactReader) -> Iterator[tuple[str, Oddity]]:
    """Names with what is odd about them; nothing where all of them are on the host."""
    if all(device in ("cpu", "meta") for found in everything for device in found.devices):
        return
    trees = [tree for tree in map(_parse, cells) if tree is not None]
    by_name = {found.name: found for found in everything}
    yield from calls.remarks(trees, by_name, reader)
    yield from _alone_on_second_card(trees, by_name)
    yield from _not_pinned(trees, by_name)
    yield from _tensors_not_pinned(trees, by_name)


def _parse(cell: str) -> ast.Module | None:
    """The tree of a cell; lines of magics and shell commands are left out."""
    lines = ["" if line.lstrip().startswith(("%", "!", "?")) else line for line in cell.splitlines()]
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _alone_on_second_card(trees: Sequence[ast.Module], names: dict[str, Survey]) -> Iterator[tuple[str, Oddity]]:
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
            name, home = holders[0], others[0]
            move = f"{name}.to({home!r})"
            alone = names[name]
            code = f"{name} = {move}" if not isinstance(alone, Many) else move if alone.kind == "module" else ""
            clue = Clue("hardcoded_device", name, device, home)
            yield (
                name,
                Oddity(
                    say("alone on {device} by a literal, the rest on {home}", device=device, home=home),
                    code,
                    clues=(clue,),
                ),
            )


def _not_pinned(trees: Sequence[ast.Module], names: dict[str, Survey]) -> Iterator[tuple[str, Oddity]]:
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
                words = say(
                    "feeds {device} from {size} MiB of unpinned host memory: pin_memory=True",
                    device=accelerators[0],
                    size=f"{size:,}",
                )
                clue = Clue("unpinned_loader", name, "cpu", accelerators[0])
                yield name, Oddity(words, f"{name}.pin_memory = True", clues=(clue,))
                names = {other: one for other, one in names.items() if other != name}


def _tensors_not_pinned(trees: Sequence[ast.Module], names: dict[str, Survey]) -> Iterator[tuple[str, Oddity]]:
    """Big host tensors of which a loop moves a part to an accelerator in each round: ``x[i:j].to(device)``."""
    accelerators = [device for found in names.values() for device in found.devices if device not in ("cpu", "meta")]
    if not accelerators:
        return
    told: set[str] = set()
    for loop in (node for tree in trees for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While))):
        for name in _moved_parts(loop):
            found = names.get(name)
            if name in told or not isinstance(found, One) or found.device != "cpu" or found.bytes < BIG:
                continue
            if placement.call(found.value, "is_pinned") is False:
                told.add(name)
                size = found.bytes // 2**20
                words = say(
                    "{size} MiB of unpinned host memory feed {device} in a loop: pin_memory()",
                    size=f"{size:,}",
                    device=accelerators[0],
                )
                yield name, Oddity(words, f"{name} = {name}.pin_memory()")


def _moved_parts(loop: ast.For | ast.While) -> Iterator[str]:
    """Names of which the loop takes a part and moves that, at once or by another name."""
    parts: dict[str, str] = {}
    for node in ast.walk(loop):
        match node:
            case ast.Assign(targets=[ast.Name(id=part)], value=ast.Subscript(value=ast.Name(id=whole))):
                parts[part] = whole
    for node in ast.walk(loop):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Name(id=whole)), attr="to" | "cuda")):
                yield whole
            case ast.Call(func=ast.Attribute(value=ast.Name(id=part), attr="to" | "cuda")) if part in parts:
                yield parts[part]


def _moves(loop: ast.For) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda")
        for node in ast.walk(loop)
    )

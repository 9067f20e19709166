"""What it costs to run a cell again: time, training steps, and what should not happen twice."""

from __future__ import annotations

import ast

from ipydevice.cells import Cell
from ipydevice.fixes import undo
from ipydevice.fixes.names import REPEATS_BADLY, Effects, last_name
from ipydevice.fixes.workspace import Workspace
from ipydevice.language import Sentence, say

LONG = 60.0  # seconds from which a re-run is worth avoiding
_TRAINS = frozenset({"step", "fit", "train_epoch", "train_one_epoch", "backward", "learn"})
_OUTSIDE: dict[str, Sentence] = {
    "savefig": "writes a file",
    "save": "writes a file",
    "to_csv": "writes a file",
    "urlretrieve": "downloads",
    "snapshot_download": "downloads",
    "load_dataset": "loads a data set",
    "system": "runs a command",
    "run_cell_magic": "runs a cell magic",
}


def called(work: Workspace, cell: Cell, effects: dict[Cell, Effects]) -> list[ast.AST]:
    """The functions of the notebook that the cell calls, itself or through one another."""
    definitions: dict[str, ast.AST] = {}
    for other in work.order:
        definitions.update((effects.get(other) or work.effects(other)).definitions)
    found: dict[str, ast.AST] = {}
    nodes: list[ast.AST] = list(effects[cell].nodes)
    while nodes:
        node = nodes.pop()
        run = [node.func] if isinstance(node, ast.Call) else getattr(node, "decorator_list", [])
        for name in [one.id for one in run if isinstance(one, ast.Name)]:
            definition = definitions.get(name)
            if definition is not None and not isinstance(definition, ast.ClassDef) and name not in found:
                found[name] = definition
                nodes += list(ast.walk(definition))
    return list(found.values())


def seconds(work: Workspace, cell: Cell, effects: dict[Cell, Effects]) -> float:
    """How long the cell took; where the history has no times, no time if it neither loops nor reaches outside."""
    if cell.duration is not None:
        return cell.duration
    bodies = [*effects[cell].nodes, *(n for body in called(work, cell, effects) for n in ast.walk(body))]
    loops = any(isinstance(n, (ast.For, ast.AsyncFor, ast.While)) for n in bodies)
    outside = any(isinstance(n, ast.Call) and last_name(n.func) in (*_OUTSIDE, "fit", "learn") for n in bodies)
    return LONG if loops or outside else 0.0


def trains(work: Workspace, cell: Cell, effects: dict[Cell, Effects]) -> bool:
    """Does the cell, or a function it calls, take training steps?"""
    trees: list[ast.AST] = list(effects[cell].nodes)
    for body in called(work, cell, effects):
        trees += list(ast.walk(body))
    return any(isinstance(n, ast.Call) and last_name(n.func) in _TRAINS for n in trees)


def dangers(cell: Cell, kept: list[Cell], effects: dict[Cell, Effects]) -> list[str]:
    """What a second run of the cell would do that should be done once: at most three, for a note."""
    found: list[str] = []
    earlier = kept[: kept.index(cell)]
    for name, method, node in effects[cell].unsafe:
        fresh = name in effects[cell].binds or any(name in effects[c].binds for c in earlier)
        if not fresh:
            found.append(
                say(
                    "In [{cell}] {does}: {call}",
                    cell=cell.number,
                    does=say(REPEATS_BADLY[method]),
                    call=f"{name}.{method}",
                )
                + undo.spoken(effects[cell].tree, node)
            )
    for part in effects[cell].nodes:
        if isinstance(part, ast.Call) and last_name(part.func) in _OUTSIDE:
            found.append(say("In [{cell}] {does} again", cell=cell.number, does=say(_OUTSIDE[last_name(part.func)])))
    return list(dict.fromkeys(found))[:3]

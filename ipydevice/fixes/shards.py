"""Weights that are still on meta because a part of the checkpoint was never loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.finding import Site
from ipydevice.fixes import classes
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.modules import workspace_device
from ipydevice.language import say
from ipydevice.placement.kinds import attributes

_Shapes = dict[str, tuple[int, ...] | None]


def missing_shards(ctx: Context) -> Iterator[Proposal]:
    """Load what is missing from the state dicts of the workspace that have it, and nothing else."""
    stray = ctx.stray
    if stray is None:
        return
    for name, model in list(ctx.finding.namespace.items()):
        if name.startswith("_") or not placement.is_module(model) or "meta" not in placement.devices_of(model):
            continue
        missing, unsaved = _on_meta(model)
        if unsaved or not missing:
            continue
        found = _parts(ctx, missing)
        place = _last_word(ctx, name)
        if not found or place is None:
            continue
        device, here = ctx.device(place, avoid=[name]), workspace_device(ctx)
        if device is None or not isinstance(place.node, ast.stmt):
            return
        draft = ctx.draft(place.source)
        draft.after(place.node, _loading(ctx, name, found, device))
        live = _loading(ctx, name, found, here) if here is not None else None
        note = say("names and shapes were compared; what is loaded already stays as it is")
        yield Proposal(say("load the weights of {name} that are missing", name=name), [draft], live=live, note=note)
        return


def _loading(ctx: Context, name: str, found: list[str], device: str) -> str:
    if len(found) == 1:
        taken = f"{{k: {found[0]}[k].to({device}) for k, v in {name}.state_dict().items() if v.is_meta}}"
        return f"{name}.load_state_dict({taken}, strict=False, assign=True)"
    part = next(n for n in ("part", "shard", "weights_part") if n not in ctx.finding.namespace)
    taken = f"{{k: v.to({device}) for k, v in {part}.items()}}"
    loop = f"for {part} in ({', '.join(found)}):"
    return f"{loop}\n    {name}.load_state_dict({taken}, strict=False, assign=True)"


def _on_meta(module: Any, prefix: str = "") -> tuple[_Shapes, bool]:
    """Names as in its state_dict and shapes of what is on meta; is there also what no state_dict holds?"""
    found: _Shapes = {}
    unsaved = False
    left_out = attributes(module).get("_non_persistent_buffers_set") or ()
    for member in placement.members(module):
        name = member.path.lstrip(".").strip("[]'\"")
        if member.via == "module":
            below, other = _on_meta(member.value, f"{prefix}{name}.")
            found |= below
            unsaved = unsaved or other
        elif placement.device_of(member.value) == "meta":
            if member.via not in ("parameter", "buffer") or name in left_out:
                unsaved = True
            else:
                found[f"{prefix}{name}"] = placement.shape_of(member.value)
    return found, unsaved


def _parts(ctx: Context, missing: _Shapes) -> list[str]:
    """Paths of the fewest dicts of the workspace that hold all that is missing, in their order."""
    held: list[tuple[str, dict[str, Any]]] = []
    for name, live in list(ctx.finding.namespace.items()):
        if not name.startswith("_"):
            held += _matching(live, name, missing, 3)
    whole = sorted((each for each in held if missing.keys() <= each[1].keys()), key=lambda each: len(each[1]))
    if whole:
        path, first = whole[0]
        alike = all(placement.same(other[k], first[k]) for _, other in whole[1:] for k in missing)
        return [path] if alike else []  # which of several is meant, nobody can tell
    chosen: list[str] = []
    left = set(missing)
    for path, tensors in held:
        if tensors.keys() & left:
            if not tensors.keys() <= left:
                return []
            chosen.append(path)
            left -= tensors.keys()
    return [] if left else chosen


def _matching(held: Any, path: str, missing: _Shapes, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, tensors) of each dict of tensors that holds something of what is missing."""
    if not isinstance(held, dict) or depth == 0:
        return
    tensors = {k: v for k, v in dict.items(held) if type(k) is str and placement.is_tensor(v)}
    fit = [k for k, v in tensors.items() if k in missing and placement.shape_of(v) == missing[k]]
    if fit and tensors.keys() == held.keys() and all(placement.device_of(tensors[k]) != "meta" for k in fit):
        yield path, tensors
        return
    for key, inner in dict.items(held):
        if type(key) in (str, int):
            yield from _matching(inner, f"{path}[{key!r}]", missing, depth - 1)


def _last_word(ctx: Context, name: str) -> Site | None:
    """The last statement before the failure that speaks of the model, at the level of a cell."""
    last: Site | None = None
    for cell in ctx.work.order:
        source = classes.cell_source(ctx, cell)
        for statement in source.tree.body:
            if cell is ctx.work.failed and (statement.end_lineno or 0) >= ctx.failed_line:
                return last
            if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(statement)):
                last = Site(source, statement)
    return last

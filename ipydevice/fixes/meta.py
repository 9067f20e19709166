"""Weights that are still on meta are loaded, never made anew."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import bindings, classes
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.modules import workspace_device
from ipydevice.fixes.names import bound, last_name, root
from ipydevice.language import say
from ipydevice.placement.kinds import attributes

_LOAD = "load_state_dict"

_Shapes = dict[str, tuple[int, ...] | None]


def not_materialized(ctx: Context) -> Iterator[Proposal]:
    """Find the weights in the workspace and load them, where the model was loaded."""
    unsaved = list(_built_with_memory(ctx))
    if unsaved:
        yield from unsaved
        return
    found = _module(ctx)
    if found is None:
        return
    path, module = found
    assigned = _assigned(ctx, path)
    if assigned is not None:
        yield assigned
        return
    name = _weights(ctx, path, _shapes(module))
    if name is None:
        return
    device = workspace_device(ctx)
    code = f"{path}.to_empty(device={device}).load_state_dict({name})"
    live = code if device is not None else None
    place = _last_load(ctx, path, name)
    if place is not None:
        site, statement = place
        there = ctx.device(Site(site.source, statement))
        if there is not None:
            draft = ctx.draft(site.source)
            draft.after(statement, f"{path}.to_empty(device={there}).load_state_dict({name})")
            yield Proposal(
                say("load the weights of {name} from {source}", name=path, source=name),
                [draft],
                live=live,
                note=say("names and shapes were compared, the numbers come from there"),
            )
            return
    if live is not None:
        yield Proposal(say("load the weights of {name} from {source}", name=path, source=name), live=live)


def _built_with_memory(ctx: Context) -> Iterator[Proposal]:
    """Buffers that no checkpoint holds (persistent=False) get their numbers in the constructor alone.

    Outside of the meta device it computes them, and the weights are loaded as before.
    """
    for name, module in list(ctx.finding.namespace.items()):
        if name.startswith("_") or not placement.is_module(module) or not _only_unsaved(module):
            continue
        for cell in reversed(ctx.work.order):
            source = classes.cell_source(ctx, cell)
            for node in source.nodes:
                if not (isinstance(node, ast.With) and _builds(ctx, source, node, name)):
                    continue
                for item in node.items:
                    said = _meta_said(item.context_expr)
                    device = ctx.device(Site(source, node), avoid=[name]) if said is not None else None
                    if said is not None and device is not None:
                        draft = ctx.draft(source)
                        draft.replace(said, device)
                        yield Proposal(
                            say(
                                "build {name} on {device}, so that the buffers that no checkpoint holds get their "
                                "values",
                                name=name,
                                device=device,
                            ),
                            [draft],
                            note=say("the weights are loaded as before; building it takes their memory once more"),
                        )
                        return


def _builds(ctx: Context, source: Source, node: ast.With, name: str) -> bool:
    """Is the model built in this block, of a cell or of the function whose result is bound to its name?"""
    function = source.function(node)
    if function is None or isinstance(function, ast.Lambda):
        return name in bound(node.body)
    step = bindings.last_binding(ctx, name)
    made = step.value if step is not None else None
    return any(isinstance(n, ast.Call) and last_name(n.func) == function.name for n in ast.walk(made or ast.Pass()))


def _only_unsaved(module: Any) -> bool:
    """Are non-persistent buffers all that is still on meta, and are there any?"""
    missing = [f for f in placement.walk(module) if placement.device_of(f.value) == "meta"]
    unsaved = [f for f in missing if f.attribute in attributes(f.owner).get("_non_persistent_buffers_set", ())]
    return bool(missing) and len(unsaved) == len(missing)


def _meta_said(node: ast.AST) -> ast.expr | None:
    """The ``"meta"`` of ``torch.device("meta")``, also of ``device="meta"``."""
    if not (isinstance(node, ast.Call) and last_name(node.func) == "device"):
        return None
    values = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("device", "type"))]
    return next((v for v in values if isinstance(v, ast.Constant) and v.value == "meta"), None)


def _assigned(ctx: Context, path: str) -> Proposal | None:
    """``load_state_dict(weights)`` copies into nothing on meta; with ``assign=True`` it takes them (torch 2.1)."""
    for cell in reversed(ctx.work.order):
        source = classes.cell_source(ctx, cell)
        for node in source.nodes:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == _LOAD):
                continue
            if source.segment(node.func.value) == path and not any(k.arg == "assign" for k in node.keywords):
                draft = ctx.draft(source)
                draft.keyword(node, "assign", "True")
                return Proposal(
                    say("let {name} take the loaded weights", name=path),
                    [draft],
                    note=say("they are where they were loaded"),
                )
    return None


def _module(ctx: Context) -> tuple[str, Any] | None:
    """(path in the workspace, module) of the outermost module that is wholly on meta."""
    stray = ctx.stray
    if stray is None or not stray.known:
        return None
    wanted = stray.value if placement.is_module(stray.value) else stray.owner
    for name, live in list(ctx.finding.namespace.items()):
        if name.startswith("_") or not placement.is_module(live):
            continue
        path = _inside(live, wanted, name)
        if path is not None:
            return path
    return None


def _inside(module: Any, wanted: Any, path: str, depth: int = 8) -> tuple[str, Any] | None:
    if module is wanted:
        return path, module
    if depth == 0:
        return None
    for member in placement.members(module):
        if member.via == "module":
            found = _inside(member.value, wanted, f"{path}{member.path}", depth - 1)
            if found is not None:
                return (
                    (f"{path}{member.path}", member.value) if placement.devices_of(member.value) == ("meta",) else found
                )
    return None


def _shapes(module: Any, prefix: str = "") -> _Shapes:
    """Names as in its state_dict, and shapes."""
    found: _Shapes = {}
    for member in placement.members(module):
        name = member.path.lstrip(".").strip("[]'\"")
        if member.via in ("parameter", "buffer"):
            found[f"{prefix}{name}"] = placement.shape_of(member.value)
        elif member.via == "module":
            found |= _shapes(member.value, f"{prefix}{name}.")
    return found


def _weights(ctx: Context, path: str, wanted: _Shapes) -> str | None:
    """Code for the state dict in the workspace that holds tensors of these names and shapes."""
    attribute = path.rsplit(".", 1)[-1].strip("[]'\"")
    parts: list[str] = []
    whole: list[str] = []
    for name, live in list(ctx.finding.namespace.items()):
        if not name.startswith("_"):
            whole += _matching(live, name, wanted, 3)
            parts += _matching(live, name, {f"{attribute}.{key}": shape for key, shape in wanted.items()}, 3, part=True)
    # Layers of one shape have state dicts that look alike: the key of the same name decides.
    named = [found for found in whole if found.rsplit("[", 1)[-1].strip("[]'\"") == attribute]
    for found in (named, whole):
        if len(found) == 1:
            return found[0]
    if len(parts) == 1 and not whole:
        prefix = f'"{attribute}."'
        return f"{{k.removeprefix({prefix}): v for k, v in {parts[0]}.items() if k.startswith({prefix})}}"
    return None


def _matching(held: Any, path: str, wanted: _Shapes, depth: int, *, part: bool = False) -> Iterator[str]:
    """Paths of the dicts whose tensors are exactly the wanted ones, or hold them among others."""
    if not isinstance(held, dict) or depth == 0:
        return
    tensors = {k: v for k, v in dict.items(held) if type(k) is str and placement.is_tensor(v)}
    shapes = {k: placement.shape_of(v) for k, v in tensors.items()}
    fits = wanted.items() <= shapes.items() if part else wanted == shapes
    if wanted and fits:
        if all(placement.device_of(tensors[key]) != "meta" for key in wanted):
            yield path
        return
    for key, inner in dict.items(held):
        if type(key) is str:
            yield from _matching(inner, f"{path}[{key!r}]", wanted, depth - 1, part=part)


def _last_load(ctx: Context, path: str, name: str) -> tuple[Site, ast.stmt] | None:
    """The last statement before the failure that loaded or moved a part of the same model."""
    base = path.split(".")[0].split("[")[0]
    held = {n.id for n in ast.walk(ast.parse(name, mode="eval")) if isinstance(n, ast.Name)} - {"k", "v"}
    last: tuple[Site, ast.stmt] | None = None
    for cell in ctx.work.order:
        source = classes.cell_source(ctx, cell)
        for statement in source.tree.body:
            if cell is ctx.work.failed and statement.lineno >= ctx.failed_line:
                return last
            for node in ast.walk(statement):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and root(node.func) == base
                    and node.func.attr in ("load_state_dict", "to", "to_empty", "cuda")
                ):
                    site = Site(source, statement)
                    if all(ctx.work.available(site, n) or n in bound([statement]) for n in held):
                        last = (site, statement)
    return last

"""How moves are written and titled, and by what names the stray goes."""

from __future__ import annotations

import ast
import re
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, Scope, attribute
from ipydevice.diagnose.evaluate import value as value_of
from ipydevice.diagnose.finding import Site
from ipydevice.fixes.context import Context
from ipydevice.fixes.names import root
from ipydevice.language import joined, say


def to(device: str) -> str:
    """The move as a suffix: ``.to(x.device)``, ``.cpu()``."""
    return ".cpu()" if device == '"cpu"' else f".to({device})"


def move_all(names: list[str], moved: list[str]) -> str:
    return f"{', '.join(names)} = {', '.join(moved)}"


def listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else say("{names} and {last}", names=joined(names[:-1]), last=names[-1])


def spoken(device: str) -> str:
    if not device.endswith(".device"):
        return device
    holder = _FIRST.sub(r"\1", device.removesuffix(".device"))
    return say("{holder}'s device", holder=holder)


_FIRST = re.compile(r"next\(([\w.\[\]]+)\.parameters\(\)\)")


def moved_where_made(names: list[str]) -> str:
    """A title about these names."""
    if len(names) == 1:
        return say("move {name} where it is made", name=names[0])
    return say("move {names} where they are made", names=listed(names))


def moved_where_used(names: list[str]) -> str:
    """A title about these names."""
    if len(names) == 1:
        return say("move {name} where it is used", name=names[0])
    return say("move {names} where they are used", names=listed(names))


def stray_names(ctx: Context) -> set[str]:
    """The names that the stray has on its way, at its use and in the steps behind it."""
    found: set[str] = set()
    if ctx.stray is not None:
        found |= {r for r in [root(ctx.stray.site.node)] if r}
    for step in ctx.chain:
        if step.how in ("assignment", "argument") and step.value is not None:
            found |= {r for r in [root(step.value)] if r}
    return found


def stray_owner(ctx: Context) -> Any:
    """The object by which the workspace reaches the stray: ``lvm`` of ``lvm._scale``."""
    stray = ctx.stray
    if stray is None or stray.path is None:
        return None
    try:
        node = ast.parse(stray.path, mode="eval").body
    except SyntaxError:
        return None
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Attribute):
        return None
    found = value_of(node.value, Scope.of_namespace(ctx.finding.namespace))
    return None if found is MISSING else found


def target_value(ctx: Context, site: Site, target: ast.expr) -> Any:
    """What an assignment's target is by now: of its frame, or ``self.x`` of the object that holds the stray."""
    live = ctx.value(Site(site.source, target, site.frame))
    stray = ctx.stray
    if live is not MISSING or stray is None or not isinstance(target, ast.Attribute):
        return live
    if root(target) == ctx.work.self_name(Site(site.source, target)):
        for owner in (stray.owner, stray_owner(ctx)):
            class_node = site.source.class_of(target)
            if (
                owner is not None
                and class_node is not None
                and any(cls.__name__ == class_node.name for cls in type(owner).__mro__)
            ):
                return attribute(owner, target.attr)
    return live


def flat_move(live: object, name: str, device: str) -> str | None:
    """One line for a dict, list or tuple of tensors."""
    if live is MISSING or placement.is_tensor(live):
        return None
    if type(live) is dict:
        tensors = [placement.is_tensor(v) for v in live.values()]
        moved = "v.to({})" if all(tensors) else 'v.to({}) if hasattr(v, "to") else v'
        rest = [v for v in live.values() if not placement.is_tensor(v)]
        if any(tensors) and not any(placement.devices_of(v) for v in rest):  # what is deeper inside would stay behind
            return f"{name} = {{k: {moved.format(device)} for k, v in {name}.items()}}"
    if type(live) in (list, tuple) and live and all(placement.is_tensor(v) for v in live):  # type: ignore[attr-defined]
        moved = f"t.to({device}) for t in {name}"
        return f"{name} = [{moved}]" if type(live) is list else f"{name} = tuple({moved})"
    return None

"""What nn.DataParallel does not copy to the other cards."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import MethodType
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.finding import Site
from ipydevice.fixes import classes, results
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.names import receiver
from ipydevice.language import say
from ipydevice.placement.kinds import attributes


def methods_of_the_first(ctx: Context) -> Iterator[Proposal]:
    """``self.routes = {"age": self.by_age}`` keeps methods of the first card's module: their names are kept instead."""
    stray = ctx.stray
    found = _methods_kept(ctx, stray.site) if stray is not None else None
    if found is None:
        return
    owner, name, held = found
    settings = classes.settings(ctx, owner, name)
    cls = settings[0].site.source.class_of(settings[0].statement) if len(settings) == 1 else None
    if cls is None or _used_outside(ctx, cls, name):
        return
    source, own = settings[0].site.source, receiver(settings[0].method)
    draft = ctx.draft(source)
    for part in _parts(settings[0].value):
        if not (isinstance(part, ast.Attribute) and ast.unparse(part.value) == own):
            return
        draft.replace(part, classes.quote(source, part.attr))
    for use in ast.walk(cls):
        if isinstance(use, ast.Attribute) and use.attr == name and isinstance(use.ctx, ast.Load):
            _by_name(draft, use, type(held) is dict)
    yield Proposal(
        say("keep the names of the methods in {holder}, so that each replica calls its own", holder=f"{own}.{name}"),
        [draft],
        note=say("a method that is kept belongs to the module of the first card"),
    )


def _methods_kept(ctx: Context, site: Site) -> tuple[Any, str, Any] | None:
    """(module, attribute, container) where a module keeps methods of its own."""
    for owner in results.instances(ctx, site.source, site.node):
        for name, held in list(attributes(owner).items()) if placement.is_module(owner) else ():
            kept = list(dict.values(held)) if type(held) is dict else list(held) if type(held) in (list, tuple) else []
            if kept and all(type(one) is MethodType and one.__self__ is owner for one in kept):
                return owner, name, held
    return None


def _parts(value: ast.expr) -> list[ast.expr]:
    """The values that a dict, list or tuple is written with; itself where it is none."""
    match value:
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            return list(parts)
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=given):
            return [keyword.value for keyword in given]
    return [value]


def _by_name(draft: Draft, use: ast.Attribute, is_dict: bool) -> None:
    """``self.routes[t]`` becomes ``getattr(self, self.routes[t])``; where it is no item, all are looked up."""
    source = draft.source
    text, own = source.segment(use), source.segment(use.value)
    up = source.parent(use)
    if isinstance(up, ast.Subscript) and up.value is use and not isinstance(up.slice, ast.Slice):
        draft.wrap(up, f"getattr({own}, ", ")")
    elif is_dict:
        draft.replace(use, f"{{key: getattr({own}, name) for key, name in {text}.items()}}")
    else:
        draft.replace(use, f"[getattr({own}, name) for name in {text}]")


def _used_outside(ctx: Context, cls: ast.ClassDef, name: str) -> bool:
    """Does code outside of the class read the attribute?"""
    inside = set(map(id, ast.walk(cls)))
    for source in classes.sources(ctx):
        for node in source.nodes:
            if isinstance(node, ast.Attribute) and node.attr == name and id(node) not in inside:
                return True
    return False

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
from ipydevice.fixes.names import parameters, receiver
from ipydevice.fixes.phrases import spoken, to
from ipydevice.fixes.uses import items_at
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
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Attribute) and node.attr == name and id(node) not in inside:
                return True
    return False


def kept_on_the_first_card(ctx: Context) -> Iterator[Proposal]:
    """Moved to where the replica computes, which is another card in each: no name outside of the method tells."""
    stray = ctx.stray
    if stray is None or stray.member or not isinstance(stray.site.node, ast.expr):
        return
    site, node = stray.site, stray.site.node
    method = next(iter(ctx.work.functions(site.source, node)), None)
    own = ctx.work.self_name(site)
    inputs = [name for name in parameters(method) if name != own] if method is not None else []
    if own not in parameters(method or node) or not inputs:
        return
    uses = items_at(site) or [node]
    device = f"{inputs[0]}.device"
    draft = ctx.draft(site.source)
    whole = site.source.parent(node)
    if uses == [node] and "[" in stray.attribute and _is_list_of(whole, node) and isinstance(whole, ast.Call):
        draft.replace(whole, f"[t{to(device)} for t in {site.source.segment(node)}]")
    else:
        for use in uses:
            draft.suffix(use, to(device))
    yield Proposal(
        say(
            "move {name} to {device}, which is another in each replica",
            name=site.source.segment(uses[0]),
            device=spoken(device),
        ),
        [draft],
        note=say("a copy in each step; a buffer is copied to the cards with the module"),
    )


def _is_list_of(call: ast.AST | None, node: ast.expr) -> bool:
    """``list(self.bank)``"""
    return isinstance(call, ast.Call) and ast.unparse(call) in (f"{f}({ast.unparse(node)})" for f in ("list", "tuple"))

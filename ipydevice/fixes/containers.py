"""Modules in a list or dict that nn.Module does not know of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.finding import Site
from ipydevice.fixes import classes, nested
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.modules import live_name, module_left_behind, workspace_device
from ipydevice.fixes.names import last_name, receiver
from ipydevice.fixes.workspace import frame_locals
from ipydevice.language import say
from ipydevice.placement.kinds import attributes
from ipydevice.placement.tensors import read

# What lists and dicts can do and nn.ModuleList and nn.ModuleDict cannot (torch 2.13).
_LIST_ONLY = frozenset(["index", "reverse", "sort", "copy", "count", "remove", "clear"])


_DICT_ONLY = frozenset(["get", "setdefault", "copy", "fromkeys"])


def plain_container(ctx: Context) -> Iterator[Proposal]:
    """``self.layers = []`` becomes ``nn.ModuleList()``, a dict ``nn.ModuleDict()``."""
    yield from registered(ctx)
    yield from module_left_behind(ctx)


def registered(ctx: Context) -> Iterator[Proposal]:
    """The list or dict that holds the stray module without its owner knowing becomes one of torch's."""
    seen: set[tuple[int, str]] = set()
    for owner, attribute, held in _containers(ctx):
        if placement.is_module(owner) and classes.all_modules(held) and (id(owner), attribute) not in seen:
            seen.add((id(owner), attribute))
            yield from _registered(ctx, owner, attribute, held)
    if not seen:
        yield from nested.registered_beside(ctx, [*_owners(ctx), *_selves(ctx)])


def _owners(ctx: Context) -> list[Any]:
    return [] if ctx.stray is None or ctx.stray.owner is None else [ctx.stray.owner]


def _containers(ctx: Context) -> Iterator[tuple[Any, str, Any]]:
    stray = ctx.stray
    if stray is None:
        return
    if placement.is_module(stray.value):  # the module itself was moved, what its list holds was not
        for name, held in list(attributes(stray.value).items()):
            if type(held) in (list, tuple, dict) and classes.all_modules(held) and name[:1] != "_":
                yield stray.value, name, held
    items = [stray.value, stray.owner]
    owners = [stray.owner, *_selves(ctx)]
    for owner in owners:
        if owner is None:
            continue
        for item in items:
            if item is not None and placement.is_module(item):
                for attribute, held in classes.containers_of(owner, item):
                    yield owner, attribute, held
        if stray.attribute:
            attribute = re.split(r"[.\[]", stray.attribute)[0]
            held = ctx_attribute(owner, attribute)
            if type(held) in (list, tuple, dict):
                yield owner, attribute, held


def ctx_attribute(owner: Any, name: str) -> Any:
    """An attribute from the instance's own dict."""
    return attributes(owner).get(name)


def _selves(ctx: Context) -> Iterator[Any]:
    """The objects whose methods are running in the frames that the finding knows."""
    sites = [ctx.finding.failed, *(s.site for s in ctx.chain)]
    if ctx.stray is not None:
        sites.insert(0, ctx.stray.site)
    for site in sites:
        found = frame_locals(site.frame).get(ctx.work.self_name(site))
        if found is not None:
            yield found


def _registered(ctx: Context, owner: Any, attribute: str, held: Any) -> Iterator[Proposal]:
    kind = "ModuleDict" if type(held) is dict else "ModuleList"
    settings = classes.settings(ctx, owner, attribute)
    path = _path_to(ctx, owner)
    device = workspace_device(ctx)
    text_keys = type(held) is not dict or all(type(k) is str and k and "." not in k for k in held)
    for setting in settings[:1]:
        site = setting.site
        name = ctx.work.torch_name(site, f"nn.{kind}")
        if name is None or not classes.after_super(setting):
            continue
        node, own = site.source.class_of(setting.statement), receiver(setting.method)
        draft = ctx.draft(site.source)
        fits = text_keys and node is not None and not _needs_plain(node, attribute, kind)
        live = None
        if fits:
            _wrapped(draft, site, setting.value, name)
            title = say("make {own}.{attribute} an nn.{kind}", own=own, attribute=attribute, kind=kind)
            if path is not None and device is not None:
                live = f"{path}.{attribute} = {live_name(ctx, f'nn.{kind}')}({path}.{attribute}).to({device})"
        else:
            # The container stays what it is; a second, registered one makes the module know its items.
            listed = ctx.work.torch_name(site, "nn.ModuleList")
            values = f"{own}.{attribute}.values()" if kind == "ModuleDict" else f"{own}.{attribute}"
            if _grows_later(node, attribute):
                continue
            draft.after(setting.statement, f"{own}.{attribute}_modules = {listed}({values})")
            title = say("register the modules of {own}.{attribute}", own=own, attribute=attribute)
        yield Proposal(
            title,
            [draft],
            live=live,
            note=say("its parameters join model.parameters() and the checkpoint; build optimizers after it"),
        )


def of_tensors(ctx: Context, owner: Any, attribute: str) -> Iterator[Proposal]:
    """A list or dict of parameters becomes one of torch's; a list of tensors of one shape one buffer of them all."""
    held = ctx_attribute(owner, attribute)
    setting = next(iter(classes.settings(ctx, owner, attribute)), None)
    if type(held) not in (list, tuple, dict) or not held or setting is None or setting.method.name != "__init__":
        return
    parts = list(held.values()) if type(held) is dict else list(held)
    source, node = setting.site.source, setting.site.source.class_of(setting.statement)
    if node is None or not setting.whole or not classes.after_super(setting):
        return
    own, path, device = receiver(setting.method), classes.path_of(ctx, owner), workspace_device(ctx)
    reached = path is not None and device is not None
    if all(placement.is_parameter(part) for part in parts):
        kind = "ParameterDict" if type(held) is dict else "ParameterList"
        name = ctx.work.torch_name(setting.site, f"nn.{kind}")
        if name is None or _needs_plain(node, attribute, kind):
            return
        draft = ctx.draft(source)
        _wrapped(draft, setting.site, setting.value, name)
        live = f"{path}.{attribute} = {live_name(ctx, f'nn.{kind}')}({path}.{attribute}).to({device})"
        note = say("they join model.parameters() and the checkpoint; build optimizers after it")
        yield Proposal(
            say("make {own}.{attribute} an nn.{kind}", own=own, attribute=attribute, kind=kind),
            [draft],
            live=live if reached else None,
            note=note,
        )
    elif type(held) is not dict and _is_stackable(parts) and not _is_changed(node, attribute):
        stack = ctx.work.torch_name(setting.site, "stack")
        value = setting.value
        if stack is None or (isinstance(value, (ast.List, ast.Tuple)) and not value.elts):
            return
        draft = ctx.draft(source)
        key = classes.quote(source, attribute)
        code = f"{own}.register_buffer({key}, {stack}({draft.segment(value)}), persistent=False)"
        draft.replace_statement(setting.statement, code)
        note = say(
            "as one tensor of all of them, which loops and numbers take as before; "
            "persistent=False keeps it out of checkpoints"
        )
        yield Proposal(
            say("make {name} a buffer, which moves with the module", name=f"{own}.{attribute}"),
            [draft],
            note=note,
        )


def _is_stackable(parts: list[Any]) -> bool:
    """Tensors of one shape and type, of which none learns."""
    if not all(placement.is_tensor(part) and not placement.is_parameter(part) for part in parts):
        return False
    alike = {(placement.shape_of(part), placement.dtype_of(part)) for part in parts}
    return len(alike) == 1 and all(read(part, "requires_grad") is False for part in parts)


def _is_changed(node: ast.ClassDef, attribute: str) -> bool:
    """Does the class bind the list anew, change it, add to it, or ask whether it is empty or what it is?"""
    for use in ast.walk(node):
        if not (isinstance(use, ast.Attribute) and use.attr == attribute and isinstance(use.ctx, ast.Load)):
            continue
        if not any(_reads(up, use) for up in ast.walk(node)):
            return True
    stores = [n for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr == attribute]
    return sum(isinstance(n.ctx, ast.Store) for n in stores) > 1


def _reads(up: ast.AST, use: ast.Attribute) -> bool:
    """``for a in self.xs``, ``zip(self.xs, ...)``, ``self.xs[i]``, ``len(self.xs)``: what a tensor can do as well."""
    match up:
        case ast.For(iter=held) | ast.comprehension(iter=held):
            return held is use
        case ast.Subscript(value=held, ctx=ast.Load()):
            return held is use
        case ast.Call(func=ast.Name(id="zip" | "enumerate" | "len" | "reversed")):
            return any(arg is use for arg in up.args)
    return False


def _wrapped(draft: Any, site: Site, value: ast.expr, name: str) -> None:
    empty = (isinstance(value, ast.List) and not value.elts) or (isinstance(value, ast.Dict) and not value.keys)
    bare = isinstance(value, ast.Call) and last_name(value.func) in ("list", "dict", "tuple") and not value.args
    if empty or (bare and not value.keywords):  # type: ignore[attr-defined]
        draft.replace(value, f"{name}()")
    else:
        draft.wrap(value, f"{name}(", ")")


def _needs_plain(node: ast.ClassDef, attribute: str, kind: str) -> bool:
    """Does the class use a method on it that the registered kind lacks?"""
    lacking = _DICT_ONLY if kind.endswith("Dict") else _LIST_ONLY
    for call in ast.walk(node):
        if (
            isinstance(call, ast.Attribute)
            and call.attr in lacking
            and isinstance(call.value, ast.Attribute)
            and call.value.attr == attribute
        ):
            return True
    return False


def _grows_later(node: ast.ClassDef | None, attribute: str) -> bool:
    for call in ast.walk(node) if node is not None else ():
        if isinstance(call, ast.Subscript) and isinstance(call.ctx, ast.Store) and last_name(call.value) == attribute:
            return True
        if (
            isinstance(call, ast.Attribute)
            and call.attr in ("append", "extend", "insert", "update")
            and last_name(call.value) == attribute
        ):
            return True
    return False


def _path_to(ctx: Context, owner: Any) -> str | None:
    """How the workspace names this object: a global name, or one level below."""
    for name, live in list(ctx.finding.namespace.items()):
        if live is owner and not name.startswith("_"):
            return name
    for name, live in list(ctx.finding.namespace.items()):
        if placement.is_module(live) and not name.startswith("_"):
            for member in placement.members(live):
                if member.value is owner:
                    return f"{name}{member.path}"
    return None

"""Modules in a list or dict that nn.Module does not know of."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.finding import Site
from ipydevice.fixes import classes
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.modules import module_left_behind, workspace_device
from ipydevice.fixes.names import last_name, receiver
from ipydevice.fixes.workspace import frame_locals
from ipydevice.placement.kinds import attributes

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
            title = f"make {own}.{attribute} an nn.{kind}"
            if path is not None and device is not None:
                live_name = _live_name(ctx, f"nn.{kind}")
                live = f"{path}.{attribute} = {live_name}({path}.{attribute}).to({device})"
        else:
            # The container stays what it is; a second, registered one makes the module know its items.
            listed = ctx.work.torch_name(site, "nn.ModuleList")
            values = f"{own}.{attribute}.values()" if kind == "ModuleDict" else f"{own}.{attribute}"
            if _grows_later(node, attribute):
                continue
            draft.after(setting.statement, f"{own}.{attribute}_modules = {listed}({values})")
            title = f"register the modules of {own}.{attribute}"
        yield Proposal(
            title,
            [draft],
            live=live,
            note="its parameters join model.parameters() and the checkpoint; build optimizers after it",
        )


def _wrapped(draft: Any, site: Site, value: ast.expr, name: str) -> None:
    empty = (isinstance(value, ast.List) and not value.elts) or (isinstance(value, ast.Dict) and not value.keys)
    bare = isinstance(value, ast.Call) and last_name(value.func) in ("list", "dict", "tuple") and not value.args
    if empty or (bare and not value.keywords):  # type: ignore[attr-defined]
        draft.replace(value, f"{name}()")
    else:
        draft.wrap(value, f"{name}(", ")")


def _needs_plain(node: ast.ClassDef, attribute: str, kind: str) -> bool:
    """Does the class use a method on it that the registered kind lacks?"""
    lacking = _DICT_ONLY if kind == "ModuleDict" else _LIST_ONLY
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


def _live_name(ctx: Context, dotted: str) -> str:
    """torch's name in the workspace, or an import that gives it."""

    torch = sys.modules.get("torch")
    for name, live in list(ctx.finding.namespace.items()):
        if torch is not None and live is torch.nn and not name.startswith("_"):
            return f"{name}.{dotted.split('.', 1)[1]}"
    for name, live in list(ctx.finding.namespace.items()):
        if torch is not None and live is torch and not name.startswith("_"):
            return f"{name}.{dotted}"
    return f"__import__('torch').{dotted}"

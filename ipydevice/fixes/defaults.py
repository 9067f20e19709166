"""Devices that a function takes when the caller says none: ``def grid(n, device="cuda:0")``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.infer import device_name, with_index
from ipydevice.fixes import classes
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import bound
from ipydevice.language import say


def said_in_the_call(ctx: Context) -> Iterator[Proposal]:
    """The call of a function of the notebook that left the stray's device to a default says the right one."""
    for site in _statements(ctx):
        for call in ast.walk(site.node):
            name = _left_to_default(ctx, site, call) if isinstance(call, ast.Call) else None
            if name is None or not isinstance(call, ast.Call):
                continue
            statement = site.node if isinstance(site.node, ast.stmt) else site.source.statement(call)
            avoid = bound([statement]) if statement is not None else set()
            device = ctx.device(Site(site.source, call, site.frame), avoid=avoid)
            if device is None:
                continue
            draft = ctx.draft(site.source)
            draft.keyword(call, name, device)
            yield Proposal(
                say("say {name}={device} in the call, which left it to a default", name=name, device=device), [draft]
            )
            return


def _statements(ctx: Context) -> Iterator[Site]:
    """The simple statements on the stray's way, the place of its use first."""
    sites = [ctx.stray.site] if ctx.stray is not None else []
    seen: set[int] = set()
    for site in (*sites, *(step.site for step in ctx.chain), *(step.site for step in ctx.finding.owner_chain)):
        statement = site.source.statement(site.node)
        if statement is not None and id(statement) not in seen and not hasattr(statement, "body"):
            seen.add(id(statement))
            yield Site(site.source, statement, site.frame)


def _left_to_default(ctx: Context, site: Site, call: ast.Call) -> str | None:
    """The parameter whose default, a device written out on which the stray is, this call takes."""
    if not isinstance(call.func, (ast.Name, ast.Attribute)) or any(k.arg is None for k in call.keywords):
        return None
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    called = call.func.id if isinstance(call.func, ast.Name) else call.func.attr
    for source, function in classes.functions_named(ctx, called):
        args = function.args
        names = [a.arg for a in (*args.posonlyargs, *args.args)]
        defaults = dict(zip(names[len(names) - len(args.defaults) :], args.defaults, strict=True))
        defaults |= {a.arg: d for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None}
        bound_first = source.class_of(function) is not None
        given = {k.arg for k in call.keywords} | set(names[: len(call.args) + bound_first])
        for name, default in defaults.items():
            if name not in given and _is_strays(ctx, Site(source, default)):
                return name
    return None


def _is_strays(ctx: Context, site: Site) -> bool:
    """Does the default write out the device on which the stray is?"""
    node = site.node
    if isinstance(node, ast.Call) and node.args and all(isinstance(a, ast.Constant) for a in node.args):
        node = node.args[0]  # torch.device("cuda:0")
    if not isinstance(node, ast.Constant) or type(node.value) is not str or ctx.stray is None:
        return False
    named = device_name(node.value)
    return named is not None and with_index(named) == with_index(ctx.stray.device)

"""What one function wants on a card and another on the host: moved where it fails, and nowhere above."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice import placement
from ipydevice.diagnose.finding import Site
from ipydevice.fixes import classes, uses
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import last_name, parameters
from ipydevice.fixes.operands import is_lengths, wanted_on_host


def moved_at_the_use(ctx: Context) -> Iterator[Proposal]:
    """``lengths`` goes to a model that packs with it, and to the function that failed: only that one moves it."""
    stray = ctx.stray
    if stray is None or stray.member or stray.device != "cpu" or ctx.finding.host_required:
        return
    site, node = stray.site, stray.site.node
    if not isinstance(node, ast.Name):
        return
    area = next(iter(ctx.work.functions(site.source, node)), site.source.tree)
    if any(_keeps_home(ctx, site, call, node.id) for call in ast.walk(area) if isinstance(call, ast.Call)):
        proposal = uses.at_the_failing_line(ctx)
        if proposal is not None:
            yield proposal


def _keeps_home(ctx: Context, site: Site, call: ast.Call, name: str) -> bool:
    """Is the name given to a call that wants it on the host, or to a function of the notebook that does?"""
    given = [(number, None, part) for number, part in enumerate(call.args)]
    given += [(-1, k.arg, k.value) for k in call.keywords]  # type: ignore[misc]
    for number, keyword, part in given:
        if not (isinstance(part, ast.Name) and part.id == name):
            continue
        if is_lengths(call, part):
            return True
        for function, is_method in _called(ctx, site, call):
            names = parameters(function)[is_method:]
            parameter = keyword if number < 0 else names[number] if number < len(names) else None
            if parameter in names and wanted_on_host(ctx, str(parameter), function):
                return True
    return False


def _called(ctx: Context, site: Site, call: ast.Call) -> Iterator[tuple[ast.AST, bool]]:
    """The functions of the notebook that a call may run, and whether each is a method."""
    live = ctx.value(Site(site.source, call.func, site.frame))
    if placement.is_module(live):
        for _, node in classes.class_nodes(ctx, live):
            yield from ((one, True) for one in node.body if getattr(one, "name", "") == "forward")
        return
    for source, function in classes.functions_named(ctx, last_name(call.func)):
        yield function, source.class_of(function) is not None

"""Random generators: made on the device that they draw for, or asked where they are."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.infer import FACTORIES, call_name
from ipydevice.diagnose.source import Source
from ipydevice.fixes import bindings, classes, results
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import last_name, parameters, root
from ipydevice.language import say

# What draws numbers when it is made or gone through, on the default device where it is told no generator.
_DRAWING = ("DataLoader", "random_split", "RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")
_DEPTH = 8  # names and calls through which a generator is followed


def generator_device(ctx: Context) -> Iterator[Proposal]:
    """``torch.Generator(device=...)`` on the device on which it is used; or draw where the generator is."""
    others = _is_used_elsewhere(ctx)
    if others:
        yield from _draw_on_its_device(ctx)
        yield from _another_for_this_call(ctx)
    yield from _generator_made(ctx)
    yield from _draw_on_its_device(ctx)
    if not others:
        yield from _another_for_this_call(ctx)


def _is_used_elsewhere(ctx: Context) -> bool:
    """Does other code draw from the same generator, or from another of the same maker, content with its device?"""
    stray = ctx.stray
    if stray is None:
        return False
    uses = 0
    for name in bindings.names_of(ctx, stray.value):
        for cell in ctx.work.order:
            for node in ast.walk(ctx.work.effects(cell).tree):
                if isinstance(node, ast.keyword) and isinstance(node.value, ast.Name) and node.value.id == name:
                    uses += 1
    in_function = any(True for _ in ctx.work.functions(ctx.finding.failed.source, ctx.finding.failed.node))
    if uses > (1 if ctx.finding.failed.source.cell is ctx.work.failed and not in_function else 0):
        return True
    return any(_is_told_device(site, call) for site, call in _made_on_the_way(ctx))


def _is_told_device(site: Site, call: ast.Call) -> bool:
    """``torch.Generator(device=self.device)`` in a function: its callers have said what they draw for."""
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "device")]
    return site.source.function(call) is not None and any(isinstance(g, (ast.Name, ast.Attribute)) for g in given)


# -- where it draws -------------------------------------------------------------------------------


def _draw_on_its_device(ctx: Context) -> Iterator[Proposal]:
    """``torch.randperm(n, generator=g)`` with ``device=g.device``, and the result moved where it is wanted."""
    failed = ctx.finding.failed
    for node in ast.walk(failed.node):
        if not (isinstance(node, ast.Call) and last_name(node.func)[:4] == "rand"):
            continue
        if call_name(node, ctx.scope(failed)) not in FACTORIES:
            continue  # random_split() takes no device
        given = next((k.value for k in node.keywords if k.arg == "generator"), None)
        if given is None:
            continue
        present = next((k.value for k in node.keywords if k.arg == "device"), None)
        draft = ctx.draft(failed.source)
        draft.keyword(node, "device", f"{failed.source.segment(given)}.device")
        if present is not None:
            draft.suffix(node, f".to({failed.source.segment(present)})")
        else:
            parent = failed.source.parent(node)
            if not (isinstance(parent, ast.Attribute) and parent.attr in ("tolist", "item", "cpu")):
                draft.suffix(node, ".cpu()")
        yield Proposal(say("draw on the generator's own device"), [draft])
        return


def _another_for_this_call(ctx: Context) -> Iterator[Proposal]:
    """``random_split(ds, parts, generator=g)`` draws on the host: it gets a generator of its own, of the same seed."""
    for _, site, call in drawing_calls(ctx):
        given = next((k.value for k in call.keywords if k.arg == "generator"), None)
        made = ctx.work.torch_name(site, "Generator")
        if given is None or made is None:
            continue
        wanted = "" if ctx.target in (None, "cpu") else ctx.device(site)
        if wanted is None:
            continue
        draft = ctx.draft(site.source)
        text = site.source.segment(given)
        draft.replace(given, f"{made}({wanted}).manual_seed({text}.initial_seed())")
        yield Proposal(
            say("give {name} a generator of its own, with the seed of {other}", name=last_name(call.func), other=text),
            [draft],
            note=say("it starts from that seed on each call, whatever {name} has drawn by then", name=text),
        )
        return


# -- where it is made -----------------------------------------------------------------------------


def _generator_made(ctx: Context) -> Iterator[Proposal]:
    for site, call in _made_on_the_way(ctx):
        device = _default_device(ctx, site) or ctx.device(site)
        if device is None:
            return
        yield _made_on(ctx, site, call, device)
        return


def _made_on(ctx: Context, site: Site, call: ast.Call, device: str) -> Proposal:
    draft = ctx.draft(site.source)
    if call.args:
        draft.replace(call.args[0], device)
    else:
        draft.keyword(call, "device", device)
    return Proposal(
        say("make the generator on the device that it draws for"),
        [draft],
        note=say("each kind of device draws its own numbers from a seed"),
    )


def _default_device(ctx: Context, site: Site) -> str | None:
    """How the code would ask for the default device, where a default is what the numbers are wanted for."""
    torch = sys.modules.get("torch")
    if ctx.finding.cause != "default_device_global" or not hasattr(torch, "get_default_device"):  # torch 2.3
        return None
    said = ctx.work.torch_name(site, "get_default_device")
    return None if said is None else f"{said}()"


def _made_on_the_way(ctx: Context) -> Iterator[tuple[Site, ast.Call]]:
    """The calls that make the generator: on the stray's way, or behind the name that the failing call is given."""
    sites = [step.site for step in reversed(ctx.chain)]
    if ctx.stray is not None:
        sites.append(ctx.stray.site)
    for site in sites:
        statement = site.source.statement(site.node)
        for call in ast.walk(statement) if statement is not None and not hasattr(statement, "body") else ():
            if isinstance(call, ast.Call) and last_name(call.func) == "Generator":
                yield Site(site.source, call, site.frame), call
    stray = ctx.stray
    if stray is not None and isinstance(stray.site.node, ast.expr):
        yield from makers(ctx, stray.site, stray.site.node)
    for call in ast.walk(ctx.finding.failed.node):
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            if keyword.arg == "generator":
                yield from makers(ctx, ctx.finding.failed, keyword.value)


def makers(ctx: Context, site: Site, node: ast.expr) -> Iterator[tuple[Site, ast.Call]]:
    """The ``torch.Generator(...)`` behind an expression, through names, attributes and functions of the notebook."""
    seen: set[int] = set()
    todo: list[tuple[Site, ast.expr, int]] = [(site, node, _DEPTH)]
    while todo:
        place, expr, depth = todo.pop(0)
        if id(expr) in seen:
            continue
        seen.add(id(expr))
        for part in ast.walk(expr):
            if isinstance(part, ast.Call) and last_name(part.func) == "Generator":
                yield Site(place.source, part, place.frame), part
            elif depth:
                todo += [(s, e, depth - 1) for s, e in _behind(ctx, place, part)]


def _behind(ctx: Context, site: Site, node: ast.AST) -> Iterator[tuple[Site, ast.expr]]:
    """The expressions that gave a name, an attribute or a call its value."""
    match node:
        case ast.Name(id=name):
            yield from _bound_to_name(ctx, Site(site.source, node, site.frame), name)
        case ast.Attribute(value=holder, attr=name):
            live = ctx.value(Site(site.source, holder, site.frame))
            cls = site.source.class_of(node)
            settings = [] if live is MISSING or live is None else classes.settings(ctx, live, name)
            if not settings and cls is not None and root(holder) == ctx.work.self_name(Site(site.source, node)):
                settings = list(classes.settings_in(site.source, cls, name))
            yield from ((setting.site, setting.value) for setting in settings)
        case ast.Call(func=function):
            called = ctx.value(Site(site.source, function, site.frame))
            names = [last_name(function)]
            if called is not MISSING and not isinstance(function, ast.Attribute):
                found = classes.class_node(ctx, called)  # an object that is called
                bodies = [m for m in found[1].body if getattr(m, "name", "") == "__call__"] if found else []
                yield from ((Site(found[0], e), e) for m in bodies for e in _handed_out(m) if found)
            for source, made in (pair for one in names if one for pair in classes.functions_named(ctx, one)):
                yield from ((Site(source, e), e) for e in _handed_out(made))


def _handed_out(function: ast.AST) -> list[ast.expr]:
    """What a function returns or yields."""
    parts = (n.value for n in ast.walk(function) if isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)))
    return [part for part in parts if part is not None]


def _bound_to_name(ctx: Context, site: Site, name: str) -> Iterator[tuple[Site, ast.expr]]:
    for function in ctx.work.functions(site.source, site.node):
        stores = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
        for statement in (site.source.parent(n) for n in stores if isinstance(n.ctx, ast.Store)):
            if isinstance(statement, ast.Assign):
                yield Site(site.source, statement, site.frame), statement.value
        if name in parameters(function) and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from results.arguments(ctx, function, name)
        if stores or name in parameters(function):
            return
    for step in bindings.all_bindings(ctx, name):
        if step.value is not None:
            yield step.site, step.value


# -- loaders and samplers under a default device --------------------------------------------------


def shuffled_loader(ctx: Context) -> Iterator[Proposal]:
    """A loader that shuffles gets a generator on the default device, for that is where it draws."""
    for name, site, call in drawing_calls(ctx):
        given = next((k.value for k in call.keywords if k.arg == "generator"), None)
        for place, made in makers(ctx, site, given) if given is not None else ():
            device = _default_device(ctx, place) or ctx.device(place)
            if device is not None:
                yield _made_on(ctx, place, made, device)
                return
        device = _default_device(ctx, site) or ctx.device(site)
        generator = ctx.work.torch_name(site, "Generator")
        if device is None or generator is None or given is not None:
            continue
        draft = ctx.draft(site.source)
        draft.keyword(call, "generator", f"{generator}(device={device})")
        yield Proposal(
            say("give {name} a generator on the default device", name=name),
            [draft],
            note=say("what it draws follows this generator: seed it to repeat it"),
        )
        return


def drawing_calls(ctx: Context) -> Iterator[tuple[str, Site, ast.Call]]:
    """(name, place, call) of the loaders and samplers that may have drawn: on the failing line, then behind it."""
    failed, stray = ctx.finding.failed, ctx.stray
    for call in ast.walk(failed.node):
        if isinstance(call, ast.Call) and last_name(call.func) in _DRAWING:
            yield last_name(call.func), Site(failed.source, call, failed.frame), call
    if stray is None:
        return
    names = [name for name in [root(stray.site.node)] if name is not None]
    names += [name for name in bindings.names_of(ctx, stray.value) if name not in names]
    for name in names:
        for step in bindings.all_bindings(ctx, name):
            yield from ((name, site, call) for site, call in _loader_calls(ctx, step))


def _loader_calls(ctx: Context, step: Step) -> Iterator[tuple[Site, ast.Call]]:
    """The calls that make a loader or sampler in what the step binds, or in the functions of the notebook it calls."""
    todo: list[tuple[Source, ast.AST]] = [(step.site.source, step.value)] if step.value is not None else []
    seen: set[str] = set()
    while todo:
        source, tree = todo.pop()
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call):
                continue
            called = last_name(call.func)
            if called in _DRAWING:
                yield Site(source, call, step.site.frame if source is step.site.source else None), call
            elif called not in seen:
                seen.add(called)
                todo += classes.functions_named(ctx, called)

"""What all replicas of nn.DataParallel share: moved where one reads it, to the device of what it meets there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice import placement
from ipydevice.diagnose import bindings, locate
from ipydevice.diagnose.evaluate import MISSING, attribute, is_of
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.frames import is_library
from ipydevice.diagnose.source import Source
from ipydevice.fixes import attributes, containers, meetings
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import last_name, parameters
from ipydevice.fixes.phrases import listed, spoken, to
from ipydevice.fixes.uses import items_at
from ipydevice.language import say
from ipydevice.placement import kinds


def kept_on_the_first_card(ctx: Context) -> Iterator[Proposal]:
    """``att + bias`` becomes ``att + bias.to(att.device)``, another card in each replica; behind it what lasts."""
    stray = ctx.stray
    if stray is None or stray.member or not isinstance(stray.site.node, ast.expr):
        return
    source, node = stray.site.source, stray.site.node
    if ctx.work.self_name(stray.site) not in parameters(source.function(node) or node):
        return
    whole = _list_of_it(stray.site)
    if whole is not None:
        draft, device = ctx.draft(source), meetings.some_input(ctx, source, whole)
        if device is not None:
            draft.replace(whole, f"[t{to(device)} for t in {source.segment(node)}]")
            yield Proposal(_title([source.segment(node)], device), [draft], note=_note(ctx))
    else:
        yield from _where_read(ctx, source, node)
    for owner, name in attributes.owners(ctx):
        if placement.is_module(owner):
            yield from containers.of_tensors(ctx, owner, name)
            buffer = attributes.as_buffer(ctx, owner, name)
            if buffer is not None:
                yield buffer


def _title(texts: list[str], device: str) -> str:
    return say("move {name} to {device}, which is another in each replica", name=listed(texts), device=spoken(device))


def _note(ctx: Context) -> str:
    """Why this is only the first aid, and what would last."""
    stray = ctx.stray
    assert stray is not None
    if stray.via in ("parameter", "buffer", "module"):
        return say(
            "it is read by a method of the first card's module, as a hook or a kept method is: "
            "called in forward, it would read each replica's own"
        )
    held = kinds.attributes(stray.owner).get(stray.attribute.replace("[", ".").split(".")[0])
    if placement.is_parameter(stray.value):
        kind = "nn.ParameterDict" if is_of(held, dict) else "nn.ParameterList"
        return say(
            "a copy in each step; an {kind} is copied to the cards with the module, a plain one is shared by all",
            kind=kind,
        )
    if is_of(held, dict, list, tuple):
        return say("a copy in each step; buffers are copied to the cards with the module, a plain list or dict is not")
    return say("a copy in each step; a buffer is copied to the cards with the module")


def _where_read(ctx: Context, source: Source, node: ast.expr) -> Iterator[Proposal]:
    draft = ctx.draft(source)
    texts: list[str] = []
    first: str | None = None
    every = {id(use): use for read in (node, *_alike(ctx, source, node)) for use in _uses(ctx, source, read)}
    for use in every.values():
        device = meetings.device_met(ctx, source, use) or (
            first if first is not None and _is_known(source, use, first) else meetings.some_input(ctx, source, use)
        )
        if device is None:
            return
        first = first or device
        draft.suffix(use, to(device))
        texts.append(source.segment(use))
    if first is not None:
        yield Proposal(_title(list(dict.fromkeys(texts)), first), [draft], note=_note(ctx))


def _alike(ctx: Context, source: Source, node: ast.expr) -> Iterator[ast.expr]:
    """Where the same code reads other state of the object that no replica gets a copy of: the ``self.sin`` beside."""
    stray, failing = ctx.stray, _failing(ctx, source)
    own = ctx.work.self_name(Site(source, node))
    areas = [area for area in (source.function(node), source.function(failing) if failing else None) if area]
    if stray is None or not isinstance(node, ast.Attribute):
        return
    registered = stray.via in ("parameter", "buffer", "module")
    for part in (n for area in dict.fromkeys(areas) for n in ast.walk(area)):
        if not (isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load) and part is not node):
            continue
        if not (isinstance(part.value, ast.Name) and part.value.id == own):
            continue
        live = attribute(stray.owner, part.attr)
        plain = part.attr in kinds.attributes(stray.owner)
        held = live is not MISSING and not placement.is_module(live) and placement.devices_of(live)
        if plain != registered and held == (stray.device,) and not meetings.only_asked(source, part):
            yield part


def _is_known(source: Source, use: ast.expr, device: str) -> bool:
    """Is the device of a parameter of the same function?"""
    function = source.function(use)
    return function is not None and device.removesuffix(".device") in parameters(function)


def _list_of_it(site: Site) -> ast.Call | None:
    """The ``list(self.bank)`` around the place where the stray is read."""
    node = site.node
    call = site.source.parent(node)
    alike = [f"{name}({ast.unparse(node)})" for name in ("list", "tuple")]
    return call if isinstance(call, ast.Call) and ast.unparse(call) in alike else None


# -- from the place that reads it to the line that failed --------------------------------------------


def _uses(ctx: Context, source: Source, node: ast.expr) -> list[ast.expr]:
    """The expressions that stand for what is read, on the line that failed in the replica and on those around it."""
    failing = _failing(ctx, source)
    if failing is None or any(part is node for part in ast.walk(failing)):
        return items_at(Site(source, node)) or _handed_out(source, node) or [node]
    function = source.function(failing) or failing
    loads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    here = {n.id for n in ast.walk(failing) if isinstance(n, ast.Name)}
    for plainly in (True, False):
        names = {name for name in {n.id for n in loads} if _leads(source, function, name, node, set(), plainly)}
        if names & here:
            return [n for n in loads if n.id in names and not meetings.only_asked(source, n)]
    return _handed_out(source, node) or [node]


def _failing(ctx: Context, source: Source) -> ast.AST | None:
    """The statement of the innermost frame of the user's in the replica, whose traceback came as text."""
    for text in reversed(ctx.finding.mismatch.frames):
        if not is_library(text.file):
            found = locate.running(source, text.line, None)
            return None if hasattr(found, "body") else found
    return None


_Seen = set[tuple[int, str]]


def _leads(source: Source, function: ast.AST, name: str, node: ast.expr, seen: _Seen, plainly: bool) -> bool:
    """Is the name bound to what `node` reads, or to what is made of that alone?"""
    if (id(function), name) in seen or name in parameters(function):
        return False
    seen.add((id(function), name))
    found = bindings.of_name(function, name)
    given = [part for binding in found for part in _part(binding)]
    return (plainly or len(found) == 1) and any(_reads(source, function, part, node, seen, plainly) for part in given)


def _reads(source: Source, function: ast.AST, text: ast.AST, node: ast.expr, seen: _Seen, plainly: bool) -> bool:
    """Is it in the text; `plainly`: as a whole, one of its items or what a method of the class returns?"""
    cls = source.class_of(node)
    methods = {m.name: m for m in cls.body if isinstance(m, ast.FunctionDef)} if cls is not None else {}
    for part in _spine(text) if plainly else ast.walk(text):
        if part is node:
            return True
        match part:
            case ast.Name(id=name, ctx=ast.Load()):
                if _leads(source, function, name, node, seen, plainly):
                    return True
            case ast.Call(func=ast.Attribute(attr=called)) if called in methods and (0, called) not in seen:
                seen.add((0, called))
                method = methods[called]
                if any(_reads(source, method, value, node, seen, plainly) for value in bindings.returns(method)):
                    return True
    return False


def _spine(text: ast.AST) -> Iterator[ast.AST]:
    """``self.xs[i].view(n)``, ``self.xs[i]``, ``self.xs``, ``self``: an expression and what it is taken of."""
    while True:
        yield text
        match text:
            case (
                ast.Attribute(value=inner)
                | ast.Subscript(value=inner)
                | ast.Call(func=inner)
                | ast.Starred(value=inner)
            ):
                text = inner
            case _:
                return


def _part(binding: bindings.Binding) -> list[ast.expr]:
    """The part of the right-hand side that a name gets: the second argument of ``for a, b in zip(xs, ys)`` for b."""
    value = binding.value
    match value:
        case ast.Call(func=ast.Name(id="zip"), args=args) if binding.part is not None:
            return args[binding.part : binding.part + 1]
        case ast.Call(func=ast.Name(id="enumerate") | ast.Attribute(attr="items")) if binding.part == 0:
            return []
    return [value] if value is not None else []


def _handed_out(source: Source, node: ast.expr) -> list[ast.expr]:
    """The uses of the name that a loop or comprehension gives to what is in `node`."""
    below: ast.AST = node
    for up in source.ancestors(node):
        if isinstance(up, (ast.comprehension, ast.For, ast.AsyncFor)):
            return _given_names(source, up, node) if up.iter is below else []
        handing = up.func if isinstance(up, ast.Call) else up
        if last_name(handing) not in _HANDING:
            return []
        below = up
    return []


_HANDING = ("zip", "enumerate", "reversed", "items", "values")


def _given_names(source: Source, loop: ast.comprehension | ast.For | ast.AsyncFor, node: ast.expr) -> list[ast.expr]:
    area = source.parent(loop) if isinstance(loop, ast.comprehension) else loop
    assert area is not None
    found: list[ast.expr] = []
    for name in {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}:
        if isinstance(area, bindings.COMPREHENSIONS):
            given = bindings.of_comprehension(area, name)
        else:
            given = next(iter(bindings.of_name(area, name)), None)
        if given is not None and any(part is node for text in _part(given) for part in ast.walk(text)):
            uses = (n for n in ast.walk(area) if isinstance(n, ast.Name) and n.id == name)
            found += [n for n in uses if isinstance(n.ctx, ast.Load) and not meetings.only_asked(source, n)]
    return found

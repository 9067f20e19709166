"""Accelerators and cards that this machine or build does not have."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import Any

from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import bindings, classes, ordinals
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.names import last_name, own_nodes
from ipydevice.language import say
from ipydevice.placement.kinds import look_up

_NAMED = re.compile(r"(cuda|mps|xpu|hpu|npu|mtia)(?::(\d+))?")
_ASK = {"cuda": "cuda.is_available", "mps": "backends.mps.is_available", "xpu": "xpu.is_available"}
_WITH_NUMBER = ("cuda", "set_device", "device", "to")


def no_accelerator(ctx: Context) -> Iterator[Proposal]:
    """Code that also works where the accelerator or the card is missing."""
    if sys.modules.get("torch") is None:
        return
    text = ctx.finding.mismatch.text
    if "deserialize" in text:
        yield from _named_before(ctx)
        yield from _loads(ctx)
    elif "ordinal" in text or "index" in text.lower():
        yield from _other_card(ctx)
    else:
        yield from _other_device(ctx)


def _named_before(ctx: Context) -> Iterator[Proposal]:
    """The load is told a device by a setting, which other code moves to as well: the setting is what is wrong."""
    failed = ctx.finding.failed
    for node in own_nodes([failed.source.statement(failed.node) or failed.node]):
        if not (isinstance(node, ast.Call) and last_name(node.func) == "load"):
            continue
        said = next((k.value for k in node.keywords if k.arg == "map_location"), None)
        live = ctx.value(Site(failed.source, said, failed.frame)) if said is not None else MISSING
        match = _NAMED.fullmatch(str(live)) if type(live) in (str, sys.modules["torch"].device) else None
        if match is None or isinstance(said, ast.Constant):
            continue
        if match[2] and 0 < _count(match[1]) <= int(match[2]):
            yield from list(_other_card(ctx)) or ordinals.existing_card(ctx)
        elif not _count(match[1]):
            yield from _other_device(ctx)
        return


def _loads(ctx: Context) -> Iterator[Proposal]:
    failed = ctx.finding.failed
    for node in own_nodes([failed.source.statement(failed.node) or failed.node]):
        if isinstance(node, ast.Call) and last_name(node.func) == "load":
            draft = ctx.draft(failed.source)
            draft.keyword(node, "map_location", '"cpu"')
            yield Proposal(say("load to the host"), [draft], note=say("move the result to the device afterwards"))
            return


# -- a card by its number ---------------------------------------------------------------------


def _other_card(ctx: Context) -> Iterator[Proposal]:
    """The number that no card has, wherever it is written: in the failing call, or in what it was configured with."""
    wrong = _asked_for(ctx)
    if wrong is None:
        return
    kind, number = wrong
    plain: list[Draft] = []
    asking: list[Draft] = []
    for source in _texts(ctx):
        one, other = ctx.draft(source), ctx.draft(source)
        for node in source.nodes:
            if not isinstance(node, ast.expr) or not _says(source, node, kind, number):
                continue
            count = ctx.work.torch_name(Site(source, node), f"{kind}.device_count")
            text = classes.quote(source, kind) if isinstance(node, ast.Constant) and type(node.value) is str else "0"
            one.replace(node, text)
            if count is not None:
                choice = f"{source.segment(node)} if {count}() > {number} else {text}"
                other.replace(node, choice if _stands_alone(source, node) else f"({choice})")
        plain += [one] if one else []
        asking += [other] if other else []
    note = say("there is no {kind}:{number} on this machine", kind=kind, number=number)
    if plain:
        yield Proposal(say("use the card that there is, not one by its number"), plain, note=note)
    else:
        yield from _counted(ctx, kind)
    if asking:
        yield Proposal(say("use {kind}:{number} only where there is one", kind=kind, number=number), asking, note=note)


def _asked_for(ctx: Context) -> tuple[str, int] | None:
    """The (kind, number) that the failing statement asks for and this machine does not have."""
    failed = ctx.finding.failed
    statement = failed.source.statement(failed.node)
    for area in (failed.node, *([statement] if statement is not None else [])):
        for node in own_nodes([area]):
            found = _kind_and_number(ctx, Site(failed.source, node, failed.frame))
            if found is not None and found[1] >= _count(found[0]):
                return found
    return None


def _kind_and_number(ctx: Context, site: Site) -> tuple[str, int] | None:
    node = site.node
    if isinstance(node, ast.Call):  # ".cuda(3)", "torch.device('cuda', 3)", "torch.cuda.set_device(3)"
        numbers = [ctx.value(Site(site.source, arg, site.frame)) for arg in node.args[-1:]]
        if last_name(node.func) in _WITH_NUMBER and numbers and type(numbers[0]) is int:
            return "cuda", numbers[0]
        return None
    if isinstance(node, ast.JoinedStr):
        live: Any = _formatted(ctx, site, node)
    elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant)):
        live = ctx.value(site)
    else:
        return None
    torch = sys.modules["torch"]
    if type(live) is torch.device:
        live = str(live)
    match = _NAMED.fullmatch(live) if type(live) is str else None
    return (match[1], int(match[2])) if match and match[2] else None


def _formatted(ctx: Context, site: Site, node: ast.JoinedStr) -> str:
    parts = [p.value if isinstance(p, ast.FormattedValue) else p for p in node.values]
    lives = [ctx.value(Site(site.source, part, site.frame)) for part in parts]
    return "".join(str(live) if type(live) in (str, int) else "?" for live in lives)


def _count(kind: str) -> int:
    """How many cards of the kind there are; many where nobody can tell, so that none is taken to be missing."""
    try:
        return int(getattr(sys.modules["torch"], kind).device_count())
    except (AttributeError, RuntimeError):
        return sys.maxsize


def _says(source: Source, node: ast.expr, kind: str, number: int) -> bool:
    """Is this constant the device, or its number where one is wanted?"""
    if not isinstance(node, ast.Constant):
        return False
    if type(node.value) is str:
        return node.value == f"{kind}:{number}" and not isinstance(source.parent(node), (ast.JoinedStr, ast.Compare))
    call = source.parent(node)
    if type(node.value) is not int or node.value != number or not isinstance(call, ast.Call):
        return False
    name = last_name(call.func)
    return name in _WITH_NUMBER and node in call.args and (name != "device" or len(call.args) == 2)


def _counted(ctx: Context, kind: str) -> Iterator[Proposal]:
    """``f"cuda:{i}"``: the number where it is set, or round the cards that there are."""
    failed = ctx.finding.failed
    count = ctx.work.torch_name(failed, f"{kind}.device_count")
    for node in ast.walk(failed.source.statement(failed.node) or failed.node):
        if isinstance(node, ast.JoinedStr) and count is not None:
            numbers = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            if len(numbers) == 1:
                number = failed.source.segment(numbers[0])
                step = bindings.last_binding(ctx, number)
                if step is not None and isinstance(step.value, ast.Constant):
                    draft = ctx.draft(step.site.source)
                    draft.replace(step.value, "0")
                    yield Proposal(say("set {number} to a card that there is", number=number), [draft])
                first = node.values[0]
                mark = first.value if isinstance(first, ast.Constant) and type(first.value) is str else ""
                draft = ctx.draft(failed.source)
                inner = number if number.isidentifier() else f"({number})"
                draft.replace(node, f'f"{mark}{{{inner} % {count}()}}"')
                yield Proposal(say("go round the cards that there are: {call}()", call=count), [draft])
                return


# -- no accelerator at all --------------------------------------------------------------------


def _other_device(ctx: Context) -> Iterator[Proposal]:
    """All that the failed text asks of the accelerator, and the configuration that names it, in one edit."""
    drafts: list[Draft] = []
    failed = ctx.finding.failed.source
    for source in _texts(ctx):
        draft = ctx.draft(source)
        for node in source.nodes:
            # Other cells have run: what they ask is there, but for what they only name.
            if source is failed or _is_setting(source, node):
                _asks_first(ctx, draft, Site(source, node))
        drafts += [draft] if draft else []
    if drafts:
        yield Proposal(say("use the accelerator only where there is one"), drafts)


def _is_setting(source: Source, node: ast.AST) -> bool:
    """Is it what a name or an argument is set to, alone or in a list or dict?"""
    parent = source.parent(node)
    if isinstance(parent, (ast.Tuple, ast.List, ast.Dict)):
        parent = source.parent(parent)
    return isinstance(parent, (ast.Assign, ast.AnnAssign, ast.keyword))


def _asks_first(ctx: Context, draft: Draft, site: Site) -> None:
    node, source = site.node, site.source
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ASK:
        plain = all(isinstance(a, ast.Constant) for a in node.args) and not node.keywords
        holder = node.func.value
        if not plain or (isinstance(holder, ast.Name) and holder.id in ("torch", "th")):
            return
        device = _name_for(ctx, site)
        choice = device or _choice(ctx, site, node.func.attr)
        if choice is not None:
            draft.replace(node, f"{draft.segment(holder)}.to({choice})")
    elif isinstance(node, ast.expr):
        kind = _kind_named(node)
        choice = None if kind is None or _is_guarded(source, node) else _choice(ctx, site, kind)
        if choice is not None:
            draft.replace(node, choice if _stands_alone(source, node) else f"({choice})")


def _kind_named(node: ast.expr) -> str | None:
    """The kind of a device that is written out: "cuda:3", "mps", f"cuda:{rank}"."""
    if isinstance(node, ast.Constant) and type(node.value) is str:
        match = _NAMED.fullmatch(node.value)
    elif isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
        match = _NAMED.match(str(node.values[0].value))
    else:
        return None
    return match[1] if match else None


def _is_guarded(source: Source, node: ast.expr) -> bool:
    """Is it one branch of a choice already, or no device that is asked for?"""
    return isinstance(source.parent(node), (ast.IfExp, ast.JoinedStr, ast.Compare))


def _stands_alone(source: Source, node: ast.expr) -> bool:
    return isinstance(source.parent(node), (ast.Assign, ast.AnnAssign, ast.keyword, ast.Call))


def _name_for(ctx: Context, site: Site) -> str | None:
    """A device variable that the code has already, and that names what is there."""
    for name, _ in ctx.work.names(site):
        live = ctx.work.value(site, name)
        torch = sys.modules["torch"]
        if live is not MISSING and type(live) is torch.device and str(live) == "cpu" and "dev" in name.lower():
            return name
    return None


def _choice(ctx: Context, site: Site, kind: str) -> str | None:
    """``"cuda" if torch.cuda.is_available() else "cpu"``, said with the names that exist at `site`.

    Where another accelerator is here that one is asked for next: code from a Mac belongs on the card of this machine.
    """
    kinds = [kind, *(other for other in _ASK if other != kind and _is_here(other))]
    names = [ctx.work.torch_name(site, _ASK[one]) if one in _ASK else None for one in kinds]
    told = [f'"{one}" if {name}() else ' for one, name in zip(kinds, names, strict=True) if name is not None]
    return "".join([*told, '"cpu"']) if names[0] is not None else None


def _is_here(kind: str) -> bool:
    """Whether PyTorch can use an accelerator of this kind here."""
    package, _, question = _ASK[kind].rpartition(".")
    asked = look_up(sys.modules["torch"], package)
    return asked is not None and bool(getattr(asked, question)())


def _texts(ctx: Context) -> Iterator[Source]:
    """The failing text first, each text once."""
    seen: set[str] = set()
    for source in (ctx.finding.failed.source, *classes.sources(ctx)):
        if source.raw not in seen:
            seen.add(source.raw)
            yield source

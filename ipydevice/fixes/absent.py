"""Accelerators and cards that this machine or build does not have."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.names import last_name

_NAMED = re.compile(r"(cuda|mps|xpu|hpu|npu|mtia)(:\d+)?")
_ASK = {"cuda": "cuda.is_available", "mps": "backends.mps.is_available", "xpu": "xpu.is_available"}


def no_accelerator(ctx: Context) -> Iterator[Proposal]:
    """Code that also works where the accelerator or the card is missing."""
    if sys.modules.get("torch") is None:
        return
    failed = ctx.finding.failed
    statement = failed.source.statement(failed.node) or failed.node
    yield from _in(ctx, failed.source, list(_own_expressions(statement)))
    for source in classes.sources(ctx):  # a device variable or a configuration says it elsewhere
        yield from _in(ctx, source, list(ast.walk(source.tree)))


def _own_expressions(statement: ast.AST) -> Iterator[ast.AST]:
    yield statement
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt):
            yield from _own_expressions(child)


def _in(ctx: Context, source: Source, nodes: list[ast.AST]) -> Iterator[Proposal]:
    for node in nodes:
        site = Site(source, node)
        draft = ctx.draft(source)
        if isinstance(node, ast.Call) and last_name(node.func) == "load" and "deserialize" in ctx.finding.mismatch.text:
            draft.keyword(node, "map_location", '"cpu"')
            yield Proposal("load to the host", [draft], note="move the result to the device afterwards")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ASK:
            if all(isinstance(a, ast.Constant) for a in node.args) and not node.keywords and _is_tensor_call(node):
                choice = _choice(ctx, site, node.func.attr)
                if choice is not None:
                    draft.replace(node, f"{draft.segment(node.func.value)}.to({choice})")
                    yield Proposal("use the accelerator only where there is one", [draft])
        else:
            yield from _named(ctx, site, draft)


def _is_tensor_call(node: ast.Call) -> bool:
    """``x.cuda()``, not ``torch.cuda(...)``."""
    assert isinstance(node.func, ast.Attribute)
    return not (isinstance(node.func.value, ast.Name) and node.func.value.id in ("torch", "th"))


def _named(ctx: Context, site: Site, draft: Draft) -> Iterator[Proposal]:
    """A device written out as text: "cuda:3", "mps", f"cuda:{rank}"."""
    node = site.node
    kind: str | None = None
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _NAMED.fullmatch(node.value):
        kind = node.value.split(":")[0]
    elif isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
        start = _NAMED.match(str(node.values[0].value))
        kind = start[1] if start else None
    parent = site.source.parent(node)
    if kind is None or isinstance(parent, (ast.JoinedStr, ast.Compare)) or _is_guarded(site):
        if kind is not None and _wrong_index(ctx) and not isinstance(parent, (ast.JoinedStr, ast.Compare)):
            draft.replace(node, f'"{kind}"')  # type: ignore[arg-type]
            yield Proposal("use the card that there is, not one by its number", [draft])
        return
    assert isinstance(node, ast.expr)
    if _wrong_index(ctx):
        draft.replace(node, f'"{kind}"')
        yield Proposal("use the card that there is, not one by its number", [draft])
        return
    choice = _choice(ctx, site, kind)
    if choice is not None:
        plain = isinstance(parent, (ast.Assign, ast.AnnAssign, ast.keyword, ast.Call))
        draft.replace(node, choice if plain else f"({choice})")
        yield Proposal("use the accelerator only where there is one", [draft])


def _is_guarded(site: Site) -> bool:
    """Is it one branch of a choice already?"""
    parent = site.source.parent(site.node)
    return isinstance(parent, ast.IfExp)


def _wrong_index(ctx: Context) -> bool:
    """There are cards, but none of that number."""
    return "ordinal" in ctx.finding.mismatch.text or "index" in ctx.finding.mismatch.text.lower()


def _choice(ctx: Context, site: Site, kind: str) -> str | None:
    """``"cuda" if torch.cuda.is_available() else "cpu"``, said with the names that exist at `site`."""
    asked = _ASK.get(kind)
    name = ctx.work.torch_name(site, asked) if asked else None
    return None if name is None else f'"{kind}" if {name}() else "cpu"'

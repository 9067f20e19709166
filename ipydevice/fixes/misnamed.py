"""Devices under names that PyTorch does not know: "gpu", "cuda0", "CUDA:1"."""

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
from ipydevice.language import say

_SAID = re.compile(r"(?:device type at start of device string: |Invalid device string: ')([^\s']+)")
_CARD = re.compile(r"(?:cuda|gpu|nvidia|rocm|hip|amd)[\s_:-]*(\d*)", re.IGNORECASE)
_OTHERS = {"metal": "mps", "apple": "mps", "m1": "mps", "host": "cpu", "cpu0": "cpu", "intel": "xpu"}
_ASK = {"cuda": "cuda.is_available", "mps": "backends.mps.is_available", "xpu": "xpu.is_available"}


def is_misnamed(text: str) -> bool:
    """Does the message say that there is no device of such a name?"""
    return _SAID.search(text) is not None


def known_name(ctx: Context) -> Iterator[Proposal]:
    """The device's name as PyTorch has it, wherever the wrong one is written."""
    found = _SAID.search(ctx.finding.mismatch.text)
    wrong = None if found is None else _written(ctx, found[1])
    right = None if wrong is None else _right(wrong)
    if wrong is None or right is None:
        return
    drafts: list[Draft] = []
    for source in (ctx.finding.failed.source, *classes.sources(ctx)):
        if any(draft.source is source or draft.source.raw == source.raw for draft in drafts):
            continue
        draft = ctx.draft(source)
        for node in source.nodes:
            if isinstance(node, ast.Constant) and node.value == wrong and _is_given(source, node):
                draft.replace(node, _asked_for(ctx, Site(source, node), right))
        drafts += [draft] if draft else []
    if drafts:
        title = say('write "{right}" for "{wrong}", which PyTorch does not know', right=right, wrong=wrong)
        yield Proposal(title, drafts)


def _written(ctx: Context, word: str) -> str | None:
    """The whole text of which the message names the first part: "gpu:0" of "gpu"."""
    failed = ctx.finding.failed
    for node in ast.walk(failed.source.statement(failed.node) or failed.node):
        if isinstance(node, (ast.Constant, ast.Name, ast.Attribute, ast.Subscript)):
            live = ctx.value(Site(failed.source, node, failed.frame))
            if type(live) is str and live.startswith(word):
                return live
    return None


def _right(wrong: str) -> str | None:
    card = _CARD.fullmatch(wrong.strip())
    if card is None:
        kind = wrong.strip().lower()
        return _OTHERS.get(kind.partition(":")[0]) or (kind if kind in ("cpu", "mps", "xpu") else None)
    number = int(card[1] or 0)
    return f"cuda:{number}" if card[1] and number < sys.modules["torch"].cuda.device_count() else "cuda"


def _is_given(source: Source, node: ast.Constant) -> bool:
    """Is it a value that something is set to or called with, no key and nothing that is compared?"""
    up = source.parent(node)
    if isinstance(up, ast.Dict):
        return node in up.values
    return isinstance(
        up, (ast.Assign, ast.AnnAssign, ast.keyword, ast.Call, ast.arguments, ast.IfExp, ast.List, ast.Tuple)
    )


def _asked_for(ctx: Context, site: Site, right: str) -> str:
    """``"cuda" if torch.cuda.is_available() else "cpu"``, where nothing around asks already."""
    asked = _ASK.get(right.partition(":")[0])
    said = ctx.work.torch_name(site, asked) if asked is not None else None
    guarded = isinstance(site.source.parent(site.node), ast.IfExp)
    if said is None or guarded:
        return f'"{right}"'
    choice = f'"{right}" if {said}() else "cpu"'
    alone = isinstance(site.source.parent(site.node), (ast.Assign, ast.AnnAssign, ast.keyword, ast.Call))
    return choice if alone else f"({choice})"

"""Cards by number, of which this machine has fewer."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes, sound
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.names import last_name

_CARD = re.compile(r"\b(cuda|xpu):(\d+)\b")
_BY_NUMBER = ("cuda", "xpu", "set_device", "to", "device")


def existing_card(ctx: Context) -> Iterator[Proposal]:
    """Numbers of cards are taken modulo the cards that there are: "cuda:5" becomes "cuda:1" where there are two."""
    text = ctx.finding.mismatch.text.lower()
    torch = sys.modules.get("torch")
    if torch is None or not ("ordinal" in text or "index" in text or "out of range" in text):
        return
    for source in classes.sources(ctx):
        for kind in ("cuda", "xpu"):
            there = getattr(torch, kind).device_count() if f"{kind}:" in source.text or kind == "cuda" else 0
            draft = ctx.draft(source)
            count = ctx.work.torch_name(Site(source, source.tree), f"{kind}.device_count")
            changed = [_lowered(ctx, draft, source, n, kind, there, count) for n in ast.walk(source.tree) if there]
            if any(changed):
                cards = "one card" if there == 1 else f"{there} cards"
                yield Proposal(f"name cards that there are: this machine has {cards}", [draft])
                return


def _lowered(
    ctx: Context, draft: Draft, source: Source, node: ast.AST, kind: str, there: int, count: str | None
) -> bool:
    """Change one text, number or expression that says a card's number; was it changed?"""
    match node:
        case ast.Constant(value=str(text)) if not isinstance(source.parent(node), (ast.JoinedStr, ast.Expr)):
            if not any(m[1] == kind and int(m[2]) >= there for m in _CARD.finditer(text)):
                return False
            draft.replace(node, _CARD.sub(lambda m: _smaller(m, kind, there), draft.segment(node)))
            return True
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), ast.FormattedValue(value=number)]):
            if start != f"{kind}:" or count is None or not _is_too_high(ctx, source, number, there):
                return False
            quote = draft.segment(node)[-1]
            draft.replace(node, f"f{quote}{start}{{{_bracketed(source, number)} % {count}()}}{quote}")
            return True
        case ast.Call(func=called, args=args) if last_name(called) in _BY_NUMBER:
            named = len(args) == 2 and isinstance(args[0], ast.Constant) and args[0].value == kind
            number = args[1] if named else args[0] if len(args) == 1 and last_name(called) != "device" else None
            if number is None or not _is_too_high(ctx, source, number, there):
                return False
            if isinstance(number, ast.Constant):
                draft.replace(number, str(number.value % there))
                return True
            if count is None or (not named and type(_live(ctx, source, number)) is not int):
                return False
            draft.replace(number, f"{_bracketed(source, number)} % {count}()")
            return True
    return False


def _smaller(found: re.Match[str], kind: str, there: int) -> str:
    return f"{kind}:{int(found[2]) % there}" if found[1] == kind else found[0]


def _bracketed(source: Source, number: ast.expr) -> str:
    text = source.segment(number)
    return text if isinstance(number, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({text})"


def _live(ctx: Context, source: Source, number: ast.expr) -> object:
    return ctx.value(Site(source, number, sound.frame_at(ctx, source, number)))


def _is_too_high(ctx: Context, source: Source, number: ast.expr, there: int) -> bool:
    """Is it, or may it be, the number of a card that there is not?"""
    live = _live(ctx, source, number)
    if live is MISSING:
        return not isinstance(number, ast.Constant)
    return type(live) is int and live >= there

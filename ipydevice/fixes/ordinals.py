"""Cards by number, of which this machine has fewer."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes, sound
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import last_name
from ipydevice.language import say

_CARD = re.compile(r"\b(cuda|xpu):(\d+)\b")


def several_cards(ctx: Context) -> Iterator[Proposal]:
    """A list of cards, or a text that names several, of which some are not there."""
    yield from _existing(ctx, at_least=2)


def existing_card(ctx: Context) -> Iterator[Proposal]:
    """Numbers of cards are taken modulo the cards that there are: "cuda:5" becomes "cuda:1" where there are two."""
    yield from _existing(ctx, at_least=0)


def _existing(ctx: Context, at_least: int) -> Iterator[Proposal]:
    text = ctx.finding.mismatch.text.lower()
    torch = sys.modules.get("torch")
    if torch is None or not any(said in text for said in ("ordinal", "index", "out of range", "device_count")):
        return
    for source in classes.sources(ctx):
        for kind in ("cuda", "xpu"):
            there = getattr(torch, kind).device_count() if f"{kind}:" in source.text or kind == "cuda" else 0
            cards = Cards(ctx, source, kind, there)
            if there and cards.draft and cards.named >= at_least:
                counted = say("one card" if there == 1 else "{count} cards", count=there)
                yield Proposal(
                    say("name cards that there are: this machine has {counted}", counted=counted), [cards.draft]
                )
                return


class Cards:
    """The numbers of cards in one text, those that are too high brought down in a draft."""

    def __init__(self, ctx: Context, source: Source, kind: str, there: int) -> None:
        self.ctx, self.source, self.kind, self.there = ctx, source, kind, there
        self.draft = ctx.draft(source)
        texts = [(node, new) for node in source.nodes if there and (new := self._text(node)) is not None]
        self.named = sum(len(_CARD.findall(new)) for _, new in texts)
        for node, new in texts:
            assert isinstance(node, ast.expr)
            asked = self._torch(node, "is_available")
            guarded = len(texts) > 1 or asked is None or isinstance(source.parent(node), ast.IfExp)
            self.draft.replace(node, new if guarded else self._or_host(node, new, f"{asked}()"))
        for node in source.nodes if there else ():
            if isinstance(node, ast.Call):
                self._number(node)

    def _torch(self, node: ast.AST, name: str) -> str | None:
        """``torch.cuda.<name>`` as the code at the node says it."""
        return self.ctx.work.torch_name(Site(self.source, node), f"{self.kind}.{name}")

    def _text(self, node: ast.AST) -> str | None:
        """``"cuda:5"`` and ``f"cuda:{rank}"`` with cards that there are."""
        match node:
            case ast.Constant(value=str(text)) if not isinstance(self.source.parent(node), (ast.JoinedStr, ast.Expr)):
                if any(m[1] == self.kind and int(m[2]) >= self.there for m in _CARD.finditer(text)):
                    return _CARD.sub(self._smaller, self.draft.segment(node))
            case ast.JoinedStr(values=[ast.Constant(value=str(start)), ast.FormattedValue(value=number)]):
                count = self._torch(node, "device_count")
                if start == f"{self.kind}:" and count is not None and self._is_too_high(number):
                    quote = self.draft.segment(node)[-1]
                    return f"f{quote}{start}{{{self._bracketed(number)} % {count}()}}{quote}"
        return None

    def _or_host(self, node: ast.AST, new: str, asked: str) -> str:
        """The same where there is no card at all."""
        old = node.value if isinstance(node, ast.Constant) and type(node.value) is str else "cpu"
        host = classes.quote(self.source, _CARD.sub("cpu", old))
        plain = isinstance(self.source.parent(node), (ast.Assign, ast.AnnAssign, ast.keyword, ast.Call))
        return f"{new} if {asked} else {host}" if plain else f"({new} if {asked} else {host})"

    def _smaller(self, found: re.Match[str]) -> str:
        return f"{self.kind}:{int(found[2]) % self.there}" if found[1] == self.kind else found[0]

    def _number(self, call: ast.Call) -> None:
        """``x.cuda(rank)`` becomes ``x.cuda(rank % torch.cuda.device_count())``, 5 of two cards becomes 1."""
        args, called = call.args, last_name(call.func)
        named = len(args) == 2 and isinstance(args[0], ast.Constant) and args[0].value == self.kind
        alone = len(args) == 1 and called in (self.kind, "to", "set_device")
        if not (alone or (named and called == "device")) or not self._is_too_high(args[-1]):
            return
        number, count = args[-1], self._torch(call, "device_count")
        if isinstance(number, ast.Constant) and type(number.value) is int:
            self.draft.replace(number, str(number.value % self.there))
        elif count is not None and (named or self._live(number) is not None):
            self.draft.replace(number, f"{self._bracketed(number)} % {count}()")

    def _bracketed(self, number: ast.expr) -> str:
        text = self.source.segment(number)
        return text if isinstance(number, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({text})"

    def _is_too_high(self, number: ast.expr) -> bool:
        """Is it, or may it be, the number of a card that there is not?"""
        live = self._live(number)
        return not isinstance(number, ast.Constant) if live is None else live >= self.there

    def _live(self, number: ast.expr) -> int | None:
        """The number, also a sum or difference of known ones."""
        if isinstance(number, ast.BinOp) and isinstance(number.op, (ast.Add, ast.Sub)):
            left, right = self._live(number.left), self._live(number.right)
            if left is None or right is None:
                return None
            return left + right if isinstance(number.op, ast.Add) else left - right
        frame = sound.frame_at(self.ctx, self.source, number)
        live = self.ctx.value(Site(self.source, number, frame))
        return live if type(live) is int else None

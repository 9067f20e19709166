"""What the rules look at, and the words by which things are recognised."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import holders
from ipydevice.diagnose.evaluate import value
from ipydevice.diagnose.finding import Finding, Site, Step
from ipydevice.diagnose.holders import Holder
from ipydevice.diagnose.infer import on_the_way
from ipydevice.diagnose.origin import Tracer

LABELS = re.compile(
    r"(^|_)(y|yb|yy|ys|t|tb|labels?|targets?|tgts?|gt|truth|ground_truth|classes|answers?)(_|\d|$)", re.I
)


HIDDEN = re.compile(r"(^|_)(h|c|hx|cx|h0|c0|hc|hidden|hiddens?|state|states|memory|mem|carry)(_|\d|$)", re.I)


SHADOW = re.compile(r"ema|shadow|averag|swa|polyak|momentum_?(encoder|model)|moving", re.I)


METRIC = re.compile(r"metric|accuracy|confusion|meter|average_?precision|f1|recall|score|running", re.I)


WEIGHT = re.compile(r"weight|alpha|^pos|class|prior|balance|^w(_|$)", re.I)


LOSS = re.compile(r"loss|criteri", re.I)


CACHE = re.compile(r"cache|memo|_kv|past|stash|buf(fer)?s?$", re.I)


@dataclass
class Facts:
    """What the rules look at."""

    finding: Finding
    tracer: Tracer
    owners: list[Holder]  # from a name down to the stray, the stray last

    @property
    def stray(self) -> Any:
        return self.finding.stray

    @property
    def device(self) -> str:
        return self.finding.stray.device if self.finding.stray is not None else ""

    def steps(self) -> Iterator[tuple[Step | None, ast.expr, Site]]:
        """The stray's own expression, then the value of every step outwards."""
        stray = self.finding.stray
        if stray is None:
            return
        if isinstance(stray.site.node, ast.expr):
            yield None, stray.site.node, stray.site
        for step in self.finding.chain:
            if step.value is not None:
                yield step, step.value, step.site

    def calls(self) -> Iterator[tuple[ast.Call, Site]]:
        """Every call on the way, the nearest first."""
        for _, expr, site in self.steps():
            for node in ast.walk(expr):
                if isinstance(node, ast.Call):
                    yield node, site

    def calls_on_the_way(self) -> Iterator[tuple[ast.Call, Site]]:
        """Of these the ones that the value itself went through: not ``n.cpu()`` in ``pack(x, n.cpu())``."""
        for _, expr, site in self.steps():
            yield from ((call, site) for call in on_the_way(expr))

    def was_moved_in_parts(self) -> bool:
        """Whether the code on the way moves things: a helper, the object's own ``to``, a comprehension."""
        classes = [cls for holder in self.owners[:-1] for _, cls in self.tracer.classes_of(holder.value)]
        texts: list[ast.AST] = [node for cls in classes for node in cls.body if getattr(node, "name", "") == "to"]
        for step, expr, site in self.steps():
            texts.append(expr)
            if step is not None and step.how == "return":
                texts.append(site.source.function(site.node) or expr)
            for call in [node for node in ast.walk(expr) if isinstance(node, ast.Call)]:
                called = self.tracer.function_text(value(call.func, self.tracer.scope(site)))
                texts += [called[1]] if called is not None else []
        return any(is_move(node) for text in texts for node in ast.walk(text))

    def own_move(self) -> tuple[Site, ast.Call | None] | None:
        """Where the object that holds the stray moves what it holds, and the call there that moves the stray itself."""
        for holder, held in pairwise(self.owners):
            if placement.is_module(holder.value) or holders.is_container(holder.value):
                continue
            name = "self." + held.path.removeprefix(holder.path).lstrip(".").split("[")[0]
            for source, cls in self.tracer.classes_of(holder.value):
                for method in (node for node in cls.body if isinstance(node, ast.FunctionDef)):
                    moves = [node for node in ast.walk(method) if isinstance(node, ast.Call) and moves_own(node)]
                    if moves and method.name != "__init__":
                        this = next((m for m in moves if ast.unparse(m.func).startswith(name + ".")), None)
                        return Site(source, source.statement(this or moves[0]) or method, None), this
        return None

    def nearest(self, test: Callable[[Any], bool]) -> Holder | None:
        """The innermost owner that passes a test."""
        return next((holder for holder in reversed(self.owners[:-1]) if test(holder.value)), None)


def is_move(node: ast.AST) -> bool:
    """``x.to(device)``, ``x.cuda()``"""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda")


def moves_own(node: ast.AST) -> bool:
    """``self.x.to(device)``"""
    return is_move(node) and isinstance(node, ast.Call) and ast.unparse(node.func).startswith("self.")


def last_name(expression: str) -> str:
    """``pos_weight`` of ``LOSSES['a'].keywords['pos_weight']``: the last name in an expression."""
    names = re.findall(r"[A-Za-z_]\w*", expression)
    return names[-1] if names else expression


def is_user_object(live: Any) -> bool:
    """An object with attributes of its own: no container, function or class."""
    return not holders.is_container(live) and placement.module_name(type(live)) not in ("builtins", "functools")

"""Names followed through frames that were printed, by the texts alone."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from ipydevice.diagnose import bindings
from ipydevice.diagnose.finding import How, Site, Step
from ipydevice.diagnose.frames import Sources
from ipydevice.diagnose.infer import VIEWS
from ipydevice.diagnose.origin import Tracer
from ipydevice.diagnose.printed import PrintedSite
from ipydevice.diagnose.source import FunctionNode, Source

TORCH: Final = ("torch", "th", "F", "nn")
# Calls beside which a module may be called, and that are none of one.
_NO_MODULES = frozenset(
    "append extend add update insert to cuda cpu numpy item tolist backward step zero_grad argmax argmin softmax "
    "log_softmax sigmoid size dim numel max min sum mean abs len int float str print range zip enumerate list tuple "
    "dict isinstance round".split()
)


class StaticTracer(Tracer):
    """Follows names through printed frames, which have no values."""

    def __init__(self, sources: Sources, sites: Sequence[PrintedSite], namespace: dict[str, Any]) -> None:
        super().__init__(sources, [], namespace)
        self.sites = sites

    def one_step(self, site: Site) -> Step | None:
        """The statement that gave the expression at `site` its value."""
        return self._step(site, None)

    def _of_parameter(
        self, source: Source, function: FunctionNode, name: str, frame: Any, *, closure: bool
    ) -> Step | None:
        """The argument in the printed frame outside; then as for a function whose frame is gone."""
        how: How = "closure" if closure else "argument"
        for inner, outer in zip(reversed(self.sites), list(reversed(self.sites))[1:], strict=False):
            if inner.source is not source or source.function(inner.statement) is not function:
                continue
            first = bindings.parameters(function)[:1]
            bound = first in (["self"], ["cls"])
            called = [node for node in ast.walk(outer.statement) if isinstance(node, ast.Call)]
            # Of several modules that one statement calls the inner one runs first.
            called.sort(key=lambda node: sum(1 for _ in ast.walk(node)))
            for call in called:
                given = bindings.argument_for(call, function, name, bound)
                if given is not None and _may_call(call, function):
                    return Step(how, Site(outer.source, call), given)
        return super()._of_parameter(source, function, name, frame, closure=closure)


def _may_call(call: ast.Call, function: FunctionNode) -> bool:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    name = getattr(function, "name", "<lambda>")
    if called == name:
        return True
    if name in ("forward", "__call__"):
        found = root(call.func)
        of_torch = isinstance(found, ast.Name) and found.id in TORCH
        return not of_torch and called not in _NO_MODULES and called not in VIEWS
    return name in ("<lambda>", "__init__", "__getitem__")


def root(node: ast.expr) -> ast.expr:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node

"""Causes of strays that were made where they are: by torch's factories, by other libraries."""

from __future__ import annotations

import ast

from ipydevice import placement
from ipydevice.diagnose.causes.facts import Facts
from ipydevice.diagnose.evaluate import MISSING, Scope, is_of, value
from ipydevice.diagnose.finding import Finding, Site, Step
from ipydevice.diagnose.infer import FACTORIES, call_name, keyword, moved_to, on_the_way
from ipydevice.diagnose.origin import Tracer


def library_result(facts: Facts) -> str | None:
    """The value comes out of a function that is neither torch's nor the user's."""
    for step, expr, site in facts.steps():
        scope = facts.tracer.scope(site)
        node = _made_first(expr, scope)
        if not isinstance(node, ast.Call):
            continue
        name = call_name(node, scope)
        if step is not None and step.how == "loop":
            return None  # out of a loader: an input like any other
        if name in ("from_numpy", "tensor", "as_tensor") and node.args and _is_foreign(node.args[0], facts, site):
            return "library_returns_cpu"
        if name in WRAPPERS and (_computes_with_numpy(site, node) or facts.finding.mismatch.family == "autograd"):
            return "library_returns_cpu"
        if not name and _is_foreign(node, facts, site):
            return "library_returns_cpu"
    return None


def _made_first(expr: ast.expr, scope: Scope) -> ast.expr:
    """``f(x)`` of ``f(x)[0]`` and of ``f(x).float()``: what the value is a view or a conversion of."""
    node = expr
    while True:
        match node:
            case ast.Subscript(value=inner) | ast.Attribute(value=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=ast.Call() as inner)) if not call_name(node, scope):
                if moved_to(node, scope) is not None:
                    return node
                node = inner
            case _:
                return node


def _computes_with_numpy(site: Site, node: ast.Call) -> bool:
    """Whether the function around takes tensors to numpy, or computes there in a file: a host tensor by design."""
    function = site.source.function(node)
    in_file = site.source.cell is None
    return function is not None and any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and (part.func.attr == "numpy" or (in_file and ast.unparse(part.func).startswith(("np.", "numpy.", "scipy."))))
        for part in ast.walk(function)
    )


def _is_foreign(node: ast.expr, facts: Facts, site: Site) -> bool:
    """A call of a function of an installed library other than torch."""
    if not isinstance(node, ast.Call):
        return False
    live = value(node.func, facts.tracer.scope(site))
    if live is MISSING or is_of(live, type):
        return False
    kind = placement.class_name(type(live))
    module = (
        getattr(live, "__module__", None)
        if kind in ("function", "builtin_function_or_method", "method", "ufunc")
        else None
    )
    if not isinstance(module, str):
        return kind in ("ufunc", "_ArrayFunctionDispatcher")
    top = module.split(".")[0]
    if top in ("torch", "builtins", "__main__", "ipydevice", "copy", "_operator", "operator"):
        return False
    return facts.tracer.function_text(live) is None


# They put a tensor around data that is there already: an input, nothing fresh.
WRAPPERS = frozenset(("from_numpy", "frombuffer", "from_file", "as_tensor", "asarray"))


def made_without_device(setter: Step, facts: Facts) -> bool:
    """Whether what an object keeps from a call was made by one of torch's factories that names no device.

    Then it is on the host whenever the call was, and no earlier call has to be blamed.
    """
    scope = facts.tracer.scope(setter.site)
    calls = list(on_the_way(setter.value)) if setter.value is not None else []
    made = [call for call in calls if call_name(call, scope) in FACTORIES - WRAPPERS]
    placed = any(keyword(call, "device") is not None or moved_to(call, scope) is not None for call in calls)
    return bool(made) and not placed and all(not call_name(call, scope).endswith("_like") for call in made)


def fresh(facts: Facts) -> str | None:
    """Made by one of torch's factories without a device: in a function, or on the line itself."""
    found = fresh_factory(facts.finding, facts.tracer)
    if found is None:
        return None
    call, site = found
    function = site.source.function(call)
    stray = facts.stray
    if call_name(call, facts.tracer.scope(site)) == "tensor" and _wraps_data(call, site):
        return None
    if function is None and not (stray is not None and any(node is call for node in ast.walk(stray.site.node))):
        return None
    return "fresh_tensor_no_device"


def _wraps_data(call: ast.Call, site: Site) -> bool:
    """``torch.tensor(ids)`` in a tokenizer or a helper, of what it was given: an input, and nothing fresh."""
    cls = site.source.class_of(call)
    if cls is not None and any(isinstance(node, ast.FunctionDef) and node.name == "forward" for node in cls.body):
        return False
    given = call.args[0] if call.args else None
    return given is not None and any(isinstance(node, ast.Name) for node in ast.walk(given))


def fresh_factory(finding: Finding, tracer: Tracer) -> tuple[ast.Call, Site] | None:
    """The call that made the stray on the default device, and where."""
    facts = Facts(finding, tracer, [])
    for call, site in facts.calls():
        scope = tracer.scope(site)
        if moved_to(call, scope) is not None:
            return None
        name = call_name(call, scope)
        if name in FACTORIES and name not in WRAPPERS and keyword(call, "device") is None:
            return call, site
    return None

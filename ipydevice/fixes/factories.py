"""Calls that make a tensor from nothing, and how they are told where to make it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice.diagnose.evaluate import MISSING, Scope
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.infer import FACTORIES, LIKES, call_name, keyword
from ipydevice.fixes.context import Context
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.names import bound, last_name, parameters

# These take no device=: https://pytorch.org/docs/stable/torch.html#creation-ops
_WITHOUT_DEVICE = frozenset(
    [
        "from_numpy",
        "frombuffer",
        "from_file",
        "complex",
        "Tensor",
        "FloatTensor",
        "LongTensor",
        "DoubleTensor",
        "IntTensor",
        "BoolTensor",
    ]
)
_WINDOWS = frozenset(
    [
        "bartlett",
        "blackman",
        "cosine",
        "exponential",
        "gaussian",
        "general_cosine",
        "general_hamming",
        "hamming",
        "hann",
        "kaiser",
    ]
)


def is_factory(call: ast.AST, scope: Scope) -> bool:
    """Does this call make a tensor and take ``device=``?"""
    if not isinstance(call, ast.Call):
        return False
    last = last_name(call.func)
    if isinstance(call.func, ast.Attribute) and last in LIKES and last.startswith("new_"):
        return True
    if last in _WINDOWS and isinstance(call.func, ast.Attribute) and last_name(call.func.value) == "windows":
        return True
    name = call_name(call, scope)
    if name in ("fftfreq", "rfftfreq") and last == name:
        return True
    if name not in FACTORIES | LIKES or name in _WITHOUT_DEVICE:
        return False
    if name == "normal" and keyword(call, "size") is None and len(call.args) < 3:
        return False  # normal(mean tensor, std tensor) follows its arguments
    given = {k.arg for k in call.keywords}
    # A generator lives on one device, and pinned memory is the host's: such a tensor is moved afterwards.
    return not given & {"generator", "pin_memory", "out"}


def fresh(expr: ast.AST, scope: Scope) -> list[ast.Call]:
    """The factory calls that decide where the value of `expr` is, in the order they stand."""
    return sorted(_fresh(expr, scope), key=lambda call: (call.lineno, call.col_offset))


def _fresh(expr: ast.AST, scope: Scope) -> Iterator[ast.Call]:
    match expr:
        case ast.Call() if is_factory(expr, scope):
            yield expr
        case ast.Call():
            if isinstance(expr.func, ast.Attribute):
                if expr.func.attr in ("to", "cuda", "cpu", "numpy", "tolist", "item"):
                    return  # where it is afterwards has nothing to do with where it was made
                yield from _fresh(expr.func.value, scope)
            if call_name(expr, scope) or last_name(expr.func) in ("Parameter", "Buffer") or is_gathering(expr):
                for part in (*expr.args, *(k.value for k in expr.keywords)):
                    yield from _fresh(part, scope)
        case ast.Name() | ast.Constant() | ast.Lambda():
            return
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            yield from _fresh(expr.elt, scope)
        case ast.Subscript() | ast.Attribute() | ast.Starred():
            yield from _fresh(expr.value, scope)
        case _:
            for child in ast.iter_child_nodes(expr):
                yield from _fresh(child, scope)


def is_gathering(call: ast.Call) -> bool:
    """``tuple(torch.zeros(3) for _ in range(2))``: where its parts are, there it is."""
    return isinstance(call.func, ast.Name) and call.func.id in ("tuple", "list") and len(call.args) == 1


def make_on_device(
    ctx: Context, draft: Draft, site: Site, expr: ast.expr, *, avoid: tuple[str, ...] = ()
) -> str | None:
    """Add ``device=`` to the factory calls in `expr`; the device named, or None where there is no such call."""
    scope = ctx.scope(site)
    calls = fresh(expr, scope)
    if not calls or not _covers(expr, calls, ctx, site) or left_to_caller(site, calls):
        return None
    code: str | None = None
    for call in calls:
        code = ctx.device(Site(site.source, call, site.frame), avoid=avoid)
        if code is None:
            return None
        draft.keyword(call, "device", code)
    return code


def follows_already(ctx: Context, site: Site, value: ast.expr) -> bool:
    """``torch.zeros_like(p)``, which ``device=p.device`` would tell nothing new."""
    calls = fresh(value, ctx.scope(site))
    if len(calls) != 1 or calls[0] is not value or any(k.arg == "device" for k in calls[0].keywords):
        return False
    function = calls[0].func
    like = last_name(function).endswith("_like") and calls[0].args
    model = calls[0].args[0] if like else function.value if last_name(function).startswith("new_") else None  # type: ignore[attr-defined]
    return (
        model is not None and ctx.device(Site(site.source, value, site.frame)) == f"{site.source.segment(model)}.device"
    )


def left_to_caller(site: Site, calls: list[ast.Call]) -> bool:
    """``device=device`` of a parameter: whoever calls the function decides."""
    for call in calls:
        said, function = keyword(call, "device"), site.source.function(call)
        if isinstance(said, ast.Name) and function is not None and said.id in parameters(function):
            return True
    return False


def _covers(expr: ast.expr, calls: list[ast.Call], ctx: Context, site: Site) -> bool:
    """Are the factories all that holds the value where it is? A stray tensor beside them would meet them next."""
    inside = {id(node) for call in calls for node in ast.walk(call)}
    for node in ast.walk(expr):
        if id(node) in inside or not isinstance(node, ast.Name):
            continue
        if _is_callee(site, node):
            continue
        live = ctx.value(Site(site.source, node, site.frame))
        if live is not MISSING and ctx.strays_like(live):
            return False
        # In a function that has returned, a local that nothing is known of may be a host tensor as well.
        if live is MISSING and site.frame is None and _is_local_operand(ctx, site, node):
            return False
    return True


def _is_local_operand(ctx: Context, site: Site, node: ast.Name) -> bool:
    """Is it a local that the function has made, or may have made, on the host, and is it computed with here?"""
    function = next(iter(ctx.work.functions(site.source, node)), None)
    if function is None or node.id in parameters(function):
        return False
    parent: ast.AST | None = node
    while isinstance(parent, (ast.Name, ast.Subscript, ast.UnaryOp)):
        parent = site.source.parent(parent)
    if isinstance(parent, ast.Attribute) and parent.attr in _OF_SIZES:
        return False
    bindings = (n for n in ast.walk(function) if isinstance(n, ast.Assign) and node.id in bound([n]))
    if any(fresh(one.value, ctx.scope(site)) for one in bindings):
        return True
    if not isinstance(parent, (ast.BinOp, ast.Compare)):
        return False
    return ctx.work.is_local(Site(site.source, node, None), node.id)


_OF_SIZES = ("shape", "size", "dtype", "device", "numel", "dim", "ndim")


def _is_callee(site: Site, node: ast.AST) -> bool:
    parent = site.source.parent(node)
    return isinstance(parent, ast.Call) and parent.func is node

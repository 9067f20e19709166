"""Tensors: where calls put them, and calls that need them elsewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ipydevice.diagnose import bindings
from ipydevice.diagnose.infer import keyword
from ipydevice.fixes.edits import Draft
from ipydevice.lint import plainly
from ipydevice.lint.names import Names, Scope
from ipydevice.lint.rule import Change, Problem, rule

_INDEXED = re.compile(r"^(cuda|xpu|npu|hpu):\d+$")
_ACCELERATED = re.compile(r"^(cuda|mps|xpu|npu|hpu)(:\d+)?$")


@rule(
    "IPD001",
    "device-index-in-code",
    "A numbered card written into the code is not there on another machine, or is somebody else's.",
)
def device_index(names: Names) -> Iterator[Problem]:
    places = [
        (call, literal)
        for call in names.calls
        for literal in _device_arguments(names, call)
        if _is_indexed(call, literal)
    ]
    if len({ast.unparse(literal) for _, literal in places}) > 1:
        return  # several cards on purpose
    for call, literal in places:
        if not any(isinstance(up, (ast.IfExp, ast.If)) for up in names.source.ancestors(call)):
            yield Problem(
                literal, f"the card {ast.unparse(literal)} is written into the code; name a device once, at the top"
            )


def _device_arguments(names: Names, call: ast.Call) -> Iterator[ast.expr]:
    attribute = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if (attribute in ("to", "cuda") and not names.full(call.func)) and call.args:
        yield call.args[0]
    given = keyword(call, "device")
    if given is not None and (attribute in ("to", "cuda") or names.full(call.func).startswith("torch.")):
        yield given


def _is_indexed(call: ast.Call, literal: ast.expr) -> bool:
    if not isinstance(literal, ast.Constant):
        return False
    if isinstance(literal.value, str):
        return bool(_INDEXED.match(literal.value))
    return type(literal.value) is int and isinstance(call.func, ast.Attribute) and call.func.attr == "cuda"


@rule(
    "IPD002",
    "load-without-map-location",
    "torch.load puts tensors where they were when they were saved: on a card that may not be here, or is full.",
)
def load_without_map(names: Names) -> Iterator[Problem]:
    for call in names.calls_of("torch.load"):
        if len(call.args) < 2 and not any(k.arg in ("map_location", None) for k in call.keywords):
            yield Problem(call, "torch.load(...) without map_location", _mapped(names, call))


def _mapped(names: Names, call: ast.Call) -> Change | None:
    """``load_state_dict`` copies into the parameters where they are, so the host is right as a stop on the way."""
    up = names.source.parent(call)
    copied = isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr == "load_state_dict"
    if not copied or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None

    def change(draft: Draft) -> object:
        return draft.keyword(call, "map_location", '"cpu"')

    return change


@rule("IPD007", "moved-copy-thrown-away", "Tensor.to() and .cuda() return a new tensor; the old one stays where it is.")
def thrown_away(names: Names) -> Iterator[Problem]:
    for scope, node in names.in_scopes():
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=moved, attr="to" | "cuda" | "cpu"))):
                if _is_to_raise(names, node):
                    continue
                if names.is_tensor(moved, scope) or plainly.is_tensor(names, scope, moved):
                    name = names.source.segment(moved)
                    change = _kept(names, node, moved) if plainly.may_be_bound(scope, moved) else None
                    yield Problem(node, f"the moved copy of {name} is thrown away", change)


def _is_to_raise(names: Names, node: ast.AST) -> bool:
    """Whether a test expects an error of the call: ``with pytest.raises(RuntimeError): x.to(device)``."""
    return any(
        isinstance(up, (ast.With, ast.AsyncWith)) and any("aises" in ast.unparse(one.context_expr) for one in up.items)
        for up in names.source.ancestors(node)
    )


def _kept(names: Names, node: ast.Expr, moved: ast.expr) -> Change | None:
    text, name = names.source.segment(node), names.source.segment(moved)
    by_number = isinstance(moved, ast.Subscript) and not isinstance(getattr(moved.slice, "value", None), str)
    if node.lineno != node.end_lineno or by_number:
        return None  # a batch may be a tuple, which takes no new item

    def change(draft: Draft) -> object:
        return draft.replace_statement(node, f"{name} = {text}")

    return change


@rule("IPD014", "numpy-of-an-accelerator", "NumPy reads host memory only: a tensor on an accelerator is moved first.")
def numpy_of_card(names: Names) -> Iterator[Problem]:
    for scope, node in names.in_scopes():
        match node:
            case ast.Call(func=ast.Attribute(value=tensor, attr="numpy"), args=[]) if _on_card(
                names, tensor, scope, node.lineno
            ):
                said = names.source.segment(node)
                yield Problem(node, f"`{said}` is of a tensor on an accelerator", _home(tensor))


def _on_card(names: Names, node: ast.expr, scope: Scope, line: int) -> bool:
    """Whether the code shows the value on an accelerator: ``x.cuda()``, or a name last bound to such."""
    match node:
        case ast.Call(func=ast.Attribute(attr="cuda"), args=[]):
            return True
        case ast.Call(func=ast.Attribute(attr="to"), args=[ast.Constant(value=str() as device)]):
            return bool(_ACCELERATED.match(device))
        case ast.Call(func=ast.Attribute(value=inner, attr="detach" | "clone" | "float" | "squeeze" | "view")):
            return _on_card(names, inner, scope, line)
        case ast.Call() if names.called(node).startswith("torch."):
            given = keyword(node, "device")
            return (
                isinstance(given, ast.Constant)
                and isinstance(given.value, str)
                and bool(_ACCELERATED.match(given.value))
            )
        case ast.Name():
            found = bindings.of_name(scope, node.id)
            value = found[0].value if len(found) == 1 and found[0].line < line and found[0].part is None else None
            return value is not None and _on_card(names, value, scope, line)
    return False


def _home(node: ast.expr) -> Change:
    def change(draft: Draft) -> object:
        return draft.suffix(node, ".cpu()")

    return change


@rule(
    "IPD016",
    "generator-on-host",
    "A random generator works for one device; torch.Generator() is the host's, the numbers are wanted elsewhere.",
)
def generator(names: Names) -> Iterator[Problem]:
    for scope, node in names.in_scopes():
        if not names.called(node).startswith("torch.") or not isinstance(node, ast.Call):
            continue
        given, device = keyword(node, "generator"), keyword(node, "device")
        if not isinstance(given, ast.Name) or not isinstance(device, ast.Constant):
            continue
        made = bindings.of_name(scope, given.id) or bindings.of_name(names.tree, given.id)
        call = _unseeded(made[0].value) if len(made) == 1 and _ACCELERATED.match(str(device.value)) else None
        if isinstance(call, ast.Call) and names.called(call) == "torch.Generator" and not (call.args or call.keywords):
            yield Problem(
                call,
                f"torch.Generator() is the host's, numbers are drawn on {ast.unparse(device)}",
                _device_of(call, repr(device.value)),
            )


def _unseeded(node: ast.expr | None) -> ast.expr | None:
    """``torch.Generator()`` in ``torch.Generator().manual_seed(0)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "manual_seed":
        return node.func.value
    return node


def _device_of(call: ast.Call, device: str) -> Change:
    code = device.replace("'", '"')

    def change(draft: Draft) -> object:
        return draft.keyword(call, "device", code)

    return change


@rule(
    "IPD017",
    "default-tensor-type",
    "set_default_tensor_type moves every factory of every library in the process, and is deprecated; pass device=.",
)
def default_type(names: Names) -> Iterator[Problem]:
    for call in names.calls_of("torch.set_default_tensor_type"):
        if re.search(r"cuda|xpu", ast.unparse(call)):
            yield Problem(
                call, "set_default_tensor_type with an accelerator's type; torch.set_default_device is its successor"
            )


@rule(
    "IPD015",
    "wait-in-a-loop",
    ".item(), .cpu() and print of a tensor wait for the accelerator on every turn of the loop.",
    opt_in=True,
)
def waits(names: Names) -> Iterator[Problem]:
    for loop in names.nodes:
        if not isinstance(loop, (ast.For, ast.While)):
            continue
        losses = set(_losses(loop))
        inner = [node for node in ast.walk(loop) if isinstance(node, (ast.For, ast.While)) and node is not loop]
        if not losses or any(True for one in inner for _ in _losses(one)):
            continue  # no training step, or the steps are those of a loop inside
        for node in ast.walk(loop):
            if isinstance(node, ast.Call) and _waits(node, losses) and not _is_now_and_then(names, node):
                yield Problem(node, f"`{names.source.segment(node)}` waits for the accelerator on every turn")


def _losses(loop: ast.AST) -> Iterator[str]:
    """What ``backward`` is called on."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Attribute) and node.attr == "backward":
            yield ast.unparse(node.value)


def _waits(call: ast.Call, losses: set[str]) -> bool:
    match call:
        case ast.Call(func=ast.Attribute(attr="item" | "tolist"), args=[]):
            return True
        case ast.Call(func=ast.Attribute(value=value, attr="cpu"), args=[]):
            return ast.unparse(value).removesuffix(".detach()") in losses
        case ast.Call(func=ast.Name(id="print"), args=args):
            return any(ast.unparse(arg) in losses for arg in args) or any(
                isinstance(part, ast.FormattedValue) and ast.unparse(part.value) in losses
                for arg in args
                for part in ast.walk(arg)
            )
    return False


def _is_now_and_then(names: Names, node: ast.AST) -> bool:
    return any(isinstance(up, ast.If) for up in names.source.ancestors(node))

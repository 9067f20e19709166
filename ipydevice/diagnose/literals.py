"""Devices that the code names as constants: right on the machine where it was written, wrong between two cards."""

from __future__ import annotations

import ast
import re
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import value
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.infer import accelerator, builds_module, device_name, keyword, moved_to, with_index
from ipydevice.diagnose.origin import Tracer


def is_literal(call: ast.Call) -> bool:
    """``x.cuda()``, ``x.to("cuda:0")``: the device stands in the code as a constant."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr in ("cuda", "xpu", "hpu", "npu", "cpu"):
        return all(isinstance(arg, ast.Constant) for arg in call.args)
    given = keyword(call, "device") or (call.args[0] if call.args else None)
    return isinstance(given, ast.Constant) and isinstance(given.value, (str, int))


def moves_module(site: Site, live: Any, device: str, tracer: Tracer) -> bool:
    """Whether the code moves the module at `site`, or a model or object that it is a part of, to a constant device.

    `live` is the module or a tensor of it, `device` where that is.
    """
    if _names_its_card(site.source.segment(site.node), tracer.trace(site), tracer):
        return True
    chain = tracer.models.find(live) or tracer.held.find(live)
    if not chain:
        return False
    if _names_its_card(chain[0].path, tracer.trace_global(chain[0].path), tracer):
        return True
    classes = {placement.class_name(type(holder.value)) for holder in chain}
    names = set(re.findall(r"[A-Za-z_]\w*", chain[-1].path))
    return any(_moves_one_of(call, names, classes, device, tracer) for call in _calls(tracer))


def only_place(device: str, target: str, tracer: Tracer) -> Site | None:
    """The one statement of the cells that sends something to `device`, where its text names that card as a constant.

    None where the code speaks of the card in other ways too, or sends things to `target` by a constant as well: then
    two cards are meant, as in a pipeline.
    """
    found: list[Site] = []
    for source in tracer.sources.all_cells():
        told = set[ast.AST]()
        for call in (node for node in source.nodes if isinstance(node, ast.Call)):
            if _sends_to(call, target, tracer):
                return None
            statement = source.statement(call)
            if statement is not None and _sends_to(call, device, tracer):
                told |= set(ast.walk(call))
                found.append(Site(source, statement, tracer.frame_running(source, statement)))
        if any(_speaks_of(node, device, tracer) for node in source.nodes if node not in told):
            return None
    texts = {site.source.segment(site.node) for site in found}  # a cell may have run more than once
    return found[-1] if len(texts) == 1 else None


def _models(tracer: Tracer) -> list[Any]:
    return [live for live in tracer.namespace.values() if placement.is_module(live)]


def _sends_to(call: ast.Call, device: str, tracer: Tracer) -> bool:
    """``x.to("cuda:1")``, ``torch.zeros(3, device="cuda:1")``"""
    if is_literal(call):
        return moved_to(call, tracer.workspace) == device
    given = keyword(call, "device")
    return isinstance(given, ast.Constant) and _is_named(given.value, device)


def _speaks_of(node: ast.AST, device: str, tracer: Tracer) -> bool:
    """Whether a node of a text may mean the card: a constant, a name, a call that takes numbers of cards."""
    match node:
        case ast.Constant(value=str(text)):
            return _is_named(text, device) or text == f"{accelerator()}:"  # of f"cuda:{i}"
        case ast.Name(ctx=ast.Load()):
            live = value(node, tracer.workspace)
            return not isinstance(live, int) and _is_named(live, device)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _TAKE_NUMBERS or (name == "device" and len(node.args) > 1)
    return False


_TAKE_NUMBERS = ("set_device", "device_count", "DataParallel", "DistributedDataParallel", "data_parallel")


def _is_named(live: object, device: str) -> bool:
    named = device_name(live)
    return named is not None and with_index(named) == device


def sends_modules(device: str, tracer: Tracer) -> bool:
    """Whether the code moves some module to a card that it names as a constant: ``first.to("cuda:0")``."""
    for call in _calls(tracer):
        if is_literal(call) and moved_to(call, tracer.workspace) == device:
            assert isinstance(call.func, ast.Attribute)
            receiver = call.func.value
            live = value(receiver, tracer.workspace)
            if placement.is_module(live) or (
                isinstance(receiver, ast.Call) and builds_module(receiver, tracer.workspace)
            ):
                return True
    return False


def _calls(tracer: Tracer) -> list[ast.Call]:
    trees = [source.tree for source in tracer.sources.all_cells()]
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _moves_one_of(call: ast.Call, names: set[str], classes: set[str], device: str, tracer: Tracer) -> bool:
    """``self.model.to("cuda:1")``, ``Net(width).to("cuda:1")``: a holder of this name, or made by this class."""
    if not is_literal(call) or moved_to(call, tracer.workspace) != device:
        return False
    assert isinstance(call.func, ast.Attribute)
    receiver = call.func.value
    made = isinstance(receiver, ast.Call)
    named: ast.expr = receiver.func if isinstance(receiver, ast.Call) else receiver
    last = named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")
    return last in (classes if made else names)


def _names_its_card(text: str, chain: list[Step], tracer: Tracer) -> bool:
    """Whether the code moves the module of this text, or what it belongs to, to a card that it names as a constant."""
    exprs = [step.value for step in chain if step.value is not None]
    calls = [node for expr in exprs for node in ast.walk(expr) if isinstance(node, ast.Call)]
    root = text.split(".")[0].split("[")[0]
    names = [text, root, *(expr.id for expr in exprs if isinstance(expr, ast.Name))]  # `for block in blocks`
    moved = next((site for site in map(tracer.last_move, names) if site is not None), None)
    if (
        moved is not None
        and isinstance(moved.node, ast.Call)
        and not (chain and tracer.is_later(chain[-1].site, moved))
    ):
        calls.append(moved.node)
    moves = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda", "xpu")]
    return bool(moves) and is_literal(moves[-1])

"""Errors whose stray is in no operand of the line: optimizer state, recorded graphs, a custom Function."""

from __future__ import annotations

import ast
import re
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import bindings, elsewhere, recorded
from ipydevice.diagnose.culprit import Choice
from ipydevice.diagnose.evaluate import Scope, value
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.frames import Frame
from ipydevice.diagnose.infer import device_name, keyword, moved_to, with_index
from ipydevice.diagnose.meeting import Candidate
from ipydevice.diagnose.origin import Tracer
from ipydevice.diagnose.source import Source
from ipydevice.language import say
from ipydevice.messages import Mismatch
from ipydevice.placement.kinds import attributes


def choose(frames: list[Frame], mismatch: Mismatch, tracer: Tracer) -> Choice | None:
    """The choice for one of the special errors; None when it is an ordinary one."""
    if not frames or frames[-1].is_user:
        return None
    optimizer = _optimizer_in(frames)
    if optimizer is not None:
        return _optimizer(frames, optimizer, tracer)
    loader = _loader_in(frames)
    if loader is not None:
        return _loader(loader, frames, mismatch, tracer)
    graph = recorded.choose(frames, mismatch, tracer)
    if graph is not None:
        return graph
    if mismatch.frames:
        return elsewhere.choose(frames, mismatch, tracer)
    function = re.search(r"Function (\w+?)Backward returned an invalid gradient", mismatch.text)
    if function is not None:
        return _custom_function(frames, function.group(1), mismatch, tracer)
    return None


def _optimizer_in(frames: list[Frame]) -> Any:
    """The optimizer whose step() is running in a library frame below the user's."""
    for frame in reversed(frames):
        if frame.is_user:
            return None
        me = frame.frame.f_locals.get("self")
        if placement.is_optimizer(me):
            return me
    return None


def _optimizer(frames: list[Frame], optimizer: Any, tracer: Tracer) -> Choice | None:
    frame = [frame for frame in frames if frame.is_user][-1]
    assert frame.source is not None
    call = frame.node if isinstance(frame.node, ast.Call) else None
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    node = call.func.value if value(call.func.value, frame.scope) is optimizer else _name_of(optimizer, frame)
    if node is None:
        return None
    for member in placement.members(optimizer):
        if member.via != "state" or not placement.is_tensor(member.key):
            continue
        home = placement.device_of(member.key)
        for inner in placement.members(member.value):
            if inner.path == "['step']" or not placement.is_tensor(inner.value):
                continue
            away = placement.device_of(inner.value)
            if away == home:
                continue
            parameter = _parameter_name(member.key, tracer) or "p"
            stray = Candidate(
                frame, node, "receiver", away, f".state[{parameter}]{inner.path}", inner.value, True, "state",
                optimizer, f"state[{parameter}]{inner.path}", optimizer,
            )  # fmt: skip
            other = Candidate(frame, node, "receiver", home, value=member.key, known=True, via="parameter")
            return Choice(
                stray,
                other,
                [stray],
                _last_touched(frame.source.segment(node), member.key, tracer)
                or tracer.trace(Site(frame.source, node, frame.frame)),
                evidence=[
                    say(
                        "the parameter {parameter} is on {home}, its {state} in the state is on {away}",
                        parameter=parameter,
                        home=home,
                        state=inner.path,
                        away=away,
                    )
                ],
                margin=10.0,
            )
    return None


def _last_touched(name: str, parameter: Any, tracer: Tracer) -> list[Step]:
    """The latest statement that set the optimizer's state, or moved the module whose parameters it has."""
    module = tracer.models.find(parameter)
    moved = module[0].path if module else ""
    for source in reversed(tracer.sources.all_cells()):
        for node in reversed(list(bindings.own_nodes(source.tree))):
            match node:
                case ast.Assign(targets=[ast.Subscript() | ast.Attribute() as target]):
                    if ast.unparse(target).startswith(f"{name}.state"):
                        return [Step("item", Site(source, node, None), node.value)]
                case ast.Call(func=ast.Attribute(value=receiver, attr="load_state_dict")) if (
                    ast.unparse(receiver) == name
                ):
                    return [
                        Step(
                            "item",
                            Site(source, source.statement(node) or node, None),
                            node.args[0] if node.args else None,
                        )
                    ]
                case ast.Call(func=ast.Attribute(value=receiver, attr="to" | "cuda" | "cpu")) if (
                    ast.unparse(receiver) == moved
                ):
                    return [Step("move", Site(source, source.statement(node) or node, None))]
    return []


def _loader_in(frames: list[Frame]) -> Any:
    """The iterator of a DataLoader that is running in a library frame below the user's."""
    for frame in reversed(frames):
        if frame.is_user:
            return None
        me = frame.frame.f_locals.get("self")
        if placement.module_name(type(me)) == "torch.utils.data.dataloader":
            return me
    return None


def _loader(iterator: Any, frames: list[Frame], mismatch: Mismatch, tracer: Tracer) -> Choice | None:
    """A batch could not be put together: the Dataset gives accelerator tensors, or the generator is wrong."""
    frame = [frame for frame in frames if frame.is_user][-1]
    node = next((expr for expr in _expressions(frame) if placement.kind_of(value(expr, frame.scope)) == "loader"), None)
    if node is None:
        node = next(iter(_expressions(frame)), None)
    if node is None:
        return None
    live = value(node, frame.scope)
    is_loader = placement.kind_of(live) == "loader"
    given = {"value": live, "known": True} if is_loader else {}
    held = attributes(iterator)
    assert frame.source is not None
    evidence = [say("`{code}` was putting a batch together", code=frame.source.segment(node))]
    if mismatch.family == "generator":
        device = mismatch.argument_device or (mismatch.devices[-1] if mismatch.devices else None)
        device = with_index(device) if device is not None else None
        return Choice(Candidate(frame, node, "value", device, **given), None, [], [], evidence=evidence, margin=1.0)
    away = next((with_index(name) for name in mismatch.devices if name not in ("cpu", "meta")), None)
    for live in (held.get("_dataset"), held.get("_collate_fn")):
        made = _made_on_accelerator(live, tracer)
        if made is not None:
            source, call = made
            stray = Candidate(frame, call, "value", away, result=True, elsewhere=source)
            step = Step("item", Site(source, source.statement(call) or call, None), call)
            return Choice(
                stray, None, [], [step], evidence=[*evidence, say("a Dataset should give host tensors")], margin=2.0
            )
    return Choice(Candidate(frame, node, "value", away, **given), None, [], [], evidence=evidence, margin=0.5)


def _expressions(frame: Frame) -> list[ast.expr]:
    node = frame.node
    return [part for part in ast.walk(node) if isinstance(part, ast.expr)] if node is not None else []


def _made_on_accelerator(live: Any, tracer: Tracer) -> tuple[Source, ast.Call] | None:
    """The call in a Dataset's class, or in a collate function, that names or moves to an accelerator."""
    texts: list[tuple[Source, ast.AST]] = list(tracer.classes_of(live)) if live is not None else []
    scope = Scope({**tracer.workspace.names, "self": live}, tracer.workspace.outer)
    function = tracer.function_text(live)
    if function is not None:
        texts.append(function)
    for source, tree in texts:
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            explicit = keyword(call, "device")
            named = device_name(value(explicit, scope)) if explicit is not None else None
            moved = named or moved_to(call, scope)
            if moved is not None and moved.split(":")[0] not in ("cpu", "meta"):
                return source, call
    return None


def _name_of(optimizer: Any, frame: Frame) -> ast.expr | None:
    for name, live in dict.items(frame.frame.f_locals):
        if live is optimizer and frame.source is not None:
            return next((n for n in frame.source.nodes if isinstance(n, ast.Name) and n.id == name), None)
    return None


def _parameter_name(parameter: Any, tracer: Tracer) -> str | None:
    chain = tracer.models.find(parameter) or tracer.held.find(parameter)
    return chain[-1].path if chain else None


def _only_tensor(expr: ast.expr) -> ast.expr:
    """``grad`` of ``float(scale) * grad``: the one operand that is not a number."""
    while isinstance(expr, ast.BinOp):
        sides = [side for side in (expr.left, expr.right) if not _is_number(side)]
        if len(sides) != 1:
            break
        expr = sides[0]
    return expr


def _is_number(expr: ast.expr) -> bool:
    match expr:
        case ast.Constant() | ast.Call(func=ast.Name(id="float" | "int" | "len")):
            return True
        case ast.Call(func=ast.Attribute(attr="item")):
            return True
    return False


def _custom_function(frames: list[Frame], name: str, mismatch: Mismatch, tracer: Tracer) -> Choice | None:
    """A user's autograd Function whose backward returned a gradient on the wrong device."""
    frame = [frame for frame in frames if frame.is_user][-1]
    for source in (*reversed(tracer.sources.all_cells()), *tracer.sources.files_of(tracer.namespace)):
        for node in source.nodes:
            if not (isinstance(node, ast.ClassDef) and node.name == name):
                continue
            backward = next((f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "backward"), None)
            returned = bindings.returns(backward) if backward is not None else []
            if not returned:
                return None
            expr = returned[-1]
            index = re.search(r"at index (\d+)", mismatch.text)
            if isinstance(expr, ast.Tuple) and index and int(index.group(1)) < len(expr.elts):
                expr = expr.elts[int(index.group(1))]
            expr = _only_tensor(expr)
            device = mismatch.argument_device or (mismatch.devices[-1] if mismatch.devices else None)
            stray = Candidate(frame, expr, "value", device, result=True, elsewhere=source)
            home = mismatch.reference_device or (mismatch.devices[0] if mismatch.devices else None)
            met = Candidate(frame, expr, "value", home, elsewhere=source)
            steps: list[Step] = tracer.trace(Site(source, expr, None), device)
            return Choice(
                stray, met, [stray], steps, evidence=[say("{name}.backward returns it", name=name)], margin=5.0
            )
    return None

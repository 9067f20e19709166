"""Causes of strays that an object holds: a module, an optimizer, a criterion, a metric, a cache."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import bindings, holders, literals
from ipydevice.diagnose.causes.facts import (
    CACHE,
    HIDDEN,
    LOSS,
    METRIC,
    SHADOW,
    WEIGHT,
    Facts,
    is_user_object,
    last_name,
    moves_own,
)
from ipydevice.diagnose.causes.made import made_without_device
from ipydevice.diagnose.causes.passed import checkpoint, hardcoded, split_model
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.gone import LET_GO
from ipydevice.diagnose.holders import Holder
from ipydevice.diagnose.infer import moved_to, on_the_way
from ipydevice.diagnose.recorded import ROLE
from ipydevice.diagnose.weigh import HOST
from ipydevice.placement.kinds import class_dicts
from ipydevice.placement.tensors import read


def optimizer_state(facts: Facts) -> str | None:
    if facts.stray is None:
        return None
    if facts.stray.via == "state" or any(placement.is_optimizer(holder.value) for holder in facts.owners):
        return "optimizer_state"
    names = [holder.path for holder in facts.owners[:-1]] + [
        placement.class_name(type(holder.value)) for holder in facts.owners[:-1]
    ]
    if any(SHADOW.search(name) for name in names) or SHADOW.search(facts.stray.expression):
        return "ema_shadow"
    owner = facts.nearest(is_user_object)
    registered = facts.stray.kind == "module" or facts.stray.via in ("parameter", "buffer")
    if owner is None or registered or placement.is_module(owner.value):
        return None
    if _steps_parameters(owner.value):
        return "optimizer_state"
    return None


def _steps_parameters(live: Any) -> bool:
    """Whether an object looks like an optimizer or a wrapper of one: it can step() and holds parameters."""
    if not _has_method(live, "step"):
        return False
    return any(placement.is_parameter(found.value) for found in placement.walk(live, limit=200))


def _has_method(live: Any, name: str) -> bool:
    """Whether its class or a base says ``def name``; looked up without the class's own ``__getattribute__``."""
    return any(name in namespace for namespace in class_dicts(type(live)))


def let_go(facts: Facts) -> str | None:
    """A state that something sets for a while: ``with streaming(net):``."""
    return "rnn_state" if facts.stray is not None and facts.stray.role == LET_GO else None


def recorded(facts: Facts) -> str | None:
    """A constant or a device that stayed in a recorded graph."""
    return "traced_constant" if facts.stray is not None and facts.stray.role == ROLE else None


def on_named_card(facts: Facts) -> str | None:
    """A module, or state of one, on a card that the code names, while everything else is on another."""
    stray = facts.stray
    if stray is None or HOST in (facts.device, facts.finding.target):
        return None
    if stray.kind != "module" and stray.via not in ("parameter", "buffer"):
        return None
    if literals.sends_modules(facts.finding.target or "", facts.tracer):
        return None
    named = literals.moves_module(stray.site, stray.value, facts.device, facts.tracer)
    return "hardcoded_device" if named else None


def module(facts: Facts) -> str | None:
    stray = facts.stray
    if stray is None or stray.kind != "module":
        return None
    node = stray.site.node
    if isinstance(node, ast.Call):
        return "module_built_in_forward"
    if _is_built_in_forward(facts):
        return "module_built_in_forward"
    for outer, inner in (*pairwise(facts.owners), *pairwise(facts.tracer.models.find(stray.value))):
        if placement.is_module(outer.value) and inner.via == "attribute" and holders.is_container(inner.value):
            return "module_in_plain_container"
    name = stray.expression
    kind = placement.class_name(type(stray.value)) if stray.known else ""
    if SHADOW.search(name) or SHADOW.search(kind):
        return "ema_shadow"
    learns = any(placement.is_parameter(tensor) for tensor in holders.registered(stray.value)) if stray.known else False
    if (METRIC.search(kind) or METRIC.search(name)) and not learns:
        return "metric_state"
    if LOSS.search(kind):
        return "loss_weight"
    if _moved_by_framework(facts):
        return "framework_moved_model"
    owners = facts.owners if len(facts.owners) > 1 else facts.tracer.model_around(stray.value)  # `for layer in layers`
    if len(owners) > 1 and placement.is_module(owners[-2].value) and _added_after_move(facts):
        return "module_added_after_move"
    return "model_not_moved"


def _is_built_in_forward(facts: Facts) -> bool:
    """A local, held by nobody else, that a forward which is running has built, or had built by what it called."""
    made = facts.finding.chain[0] if facts.finding.chain else None
    if made is None or made.how != "assignment" or not isinstance(made.value, ast.Call) or len(facts.owners) > 1:
        return False
    frames = facts.tracer.frames
    at = next((i for i, frame in enumerate(frames) if frame.frame is made.site.frame), -1)
    return any(frame.frame.f_code.co_name in ("forward", "__call__") for frame in frames[: at + 1] if frame.is_user)


def _added_after_move(facts: Facts) -> bool:
    """The submodule was put into a moved model: assigned in a cell, or by a method other than __init__.

    Or the model was moved as a whole, which takes all along that is registered then: what is elsewhere came later.
    """
    if _was_moved_whole(facts):
        return True
    for step in facts.finding.chain:
        if step.how == "attribute":
            function = step.site.source.function(step.site.node)
            return getattr(function, "name", "") != "__init__"
    return False


def _was_moved_whole(facts: Facts) -> bool:
    """Whether the model of the workspace that the stray is registered in was moved to where it should be."""
    chain = facts.tracer.model_around(facts.stray.value)
    registered = all(holder.via in ("parameter", "buffer", "module") for holder in chain[1:])
    if len(chain) < 2 or not registered or facts.finding.target is None:
        return False
    moved = facts.tracer.last_move(chain[0].path)
    calls = [(moved.node, moved)] if moved is not None and isinstance(moved.node, ast.Call) else []
    for source in facts.tracer.sources.all_cells():  # `model = Net().to(d)`, and later `model = add_adapters(model)`
        made = bindings.made(source.tree, chain[0].path)
        values = [binding.value for binding in made if binding.value is not None]
        calls += [(call, Site(source, call, None)) for value in values for call in on_the_way(value)]
    return any(moved_to(call, facts.tracer.scope(site)) == facts.finding.target for call, site in calls)


def _moved_by_framework(facts: Facts) -> bool:
    """A library's object was given the model and left it on the host: ``trainer.fit(model)``."""
    name = facts.stray.expression.split(".")[0].split("[")[0]
    for source in facts.tracer.sources.all_cells():
        for call in (node for node in source.nodes if isinstance(node, ast.Call)):
            if not (
                isinstance(call.func, ast.Attribute)
                and call.func.attr
                in ("fit", "train", "run", "test", "evaluate", "validate", "predict", "find", "prepare", "lr_find")
            ):
                continue
            if any(
                isinstance(arg, ast.Name) and arg.id == name
                for arg in (*call.args, *(kw.value for kw in call.keywords))
            ):
                return True
    return False


def loss_or_metric_tensor(facts: Facts) -> str | None:
    """A buffer, or a plain tensor, that a criterion or a metric holds."""
    stray = facts.stray
    if stray is None or stray.kind == "module":
        return None
    name = facts.owners[-1].path if len(facts.owners) > 1 else stray.expression
    argument = facts.finding.mismatch.argument or ""
    if stray.role in ("weight", "pos_weight") and _is_loss_call(facts):
        return "loss_weight"  # F.cross_entropy(..., weight=w)
    if (
        len(facts.owners) > 1
        and (argument in ("weight", "pos_weight") or _is_loss_call(facts))
        and WEIGHT.search(last_name(name))
    ):
        return "loss_weight"
    for holder in reversed(facts.owners[:-1]):
        if not is_user_object(holder.value):
            continue
        if _only_counts(holder.value, facts):
            return "metric_state"
        kind = placement.class_name(type(holder.value))
        updates, computes = _has_method(holder.value, "update"), _has_method(holder.value, "compute")
        if updates and (computes or METRIC.search(kind)):
            return "metric_state"
        if METRIC.search(kind) and not placement.is_module(holder.value):
            return "metric_state"
        if LOSS.search(kind) and stray.via in ("buffer", "parameter", "attribute", "item"):
            return "loss_weight" if WEIGHT.search(last_name(name)) else None
        break
    return None


def _only_counts(live: Any, facts: Facts) -> bool:
    """Whether it is a module of the user's that learns nothing and maps nothing: running sums in buffers."""
    if not placement.is_module(live) or facts.stray.via != "buffer":
        return False
    if any(placement.is_parameter(tensor) for tensor in holders.registered(live)):
        return False
    methods = {
        node.name for _, cls in facts.tracer.classes_of(live) for node in cls.body if isinstance(node, ast.FunctionDef)
    }
    return bool(methods) and "forward" not in methods


def _is_loss_call(facts: Facts) -> bool:
    failed = facts.finding.failed
    return bool(LOSS.search(failed.source.segment(failed.node))) or "loss" in (facts.finding.mismatch.op or "")


def kept_by_object(facts: Facts) -> str | None:
    stray = facts.stray
    if stray is None or stray.kind == "module":
        return None
    if len(facts.owners) < 2:
        return _made_from_kept(facts)
    if placement.is_tensor(stray.value) and read(stray.value, "grad_fn") is not None and split_model(facts):
        return "model_split_multi_gpu"  # computed by a part of the model on the other card, and kept for the loss
    owner = facts.nearest(is_user_object)
    if owner is None or _has_method(owner.value, "__torch_function__"):
        return None
    if not placement.is_module(owner.value) and _is_data(owner.value):
        return None
    attribute = facts.owners[facts.owners.index(owner) + 1].path.rsplit(".", 1)[-1]
    if placement.is_module(owner.value) and stray.via in ("parameter", "buffer"):
        return "module_added_after_move" if _added_after_move(facts) else "model_not_moved"
    if _discards_its_move(owner.value, attribute, facts):
        return "to_result_discarded"
    if facts.own_move() is not None and (literal := hardcoded(facts)) is not None:
        return literal
    if not placement.is_module(owner.value) and not placement.module_name(type(owner.value)).startswith("torch."):
        if any(_is_partly_moved(holder.value, facts) for holder in facts.owners[:-1]) and facts.was_moved_in_parts():
            return "nested_batch_partly_moved"
        if _is_record(owner.value, facts) or (
            _has_method(owner.value, "to") and not facts.stray.expression.startswith("self")
        ):
            return "input_not_moved"  # it could have been moved as a whole
        if any(step.how == "loop" for step in facts.finding.chain[:4]):
            return None  # it hands out its data bit by bit, as a loader does
    setter = next((step for step in facts.finding.chain if step.how in ("attribute", "item")), None)
    method = setter.site.source.function(setter.site.node) if setter is not None else None
    if checkpoint(facts):
        return "checkpoint_location"
    in_dict = type(facts.owners[-2].value) is dict  # by length or name: no state that goes from step to step
    if facts.finding.mismatch.family == "rnn" or (HIDDEN.search(last_name(attribute)) and not in_dict):
        return "rnn_state"
    if CACHE.search(attribute) or _is_kept_for_later(setter, method):
        return "fresh_tensor_no_device" if setter is not None and made_without_device(setter, facts) else "stale_cache"
    if _from_parameters(setter, owner):
        return "derived_tensor_in_init"
    literal = hardcoded(facts)
    if literal is not None:
        return literal
    return "plain_tensor_attribute"


def _made_from_kept(facts: Facts) -> str | None:
    """Computed from what an object keeps: ``protos = torch.stack(list(self.support.values()))``."""
    setter = next((step for step in facts.finding.chain if step.how == "attribute"), None)
    method = setter.site.source.function(setter.site.node) if setter is not None else None
    if setter is None or method is None or any(step.how == "loop" for step in facts.finding.chain):
        return None
    if setter.value is not None and _moves(setter.value, facts, setter.site):
        return None  # laid aside there on purpose: where it is used it is an input like any other
    return "stale_cache" if _is_kept_for_later(setter, method) else "plain_tensor_attribute"


def _moves(expr: ast.expr, facts: Facts, site: Site) -> bool:
    scope = facts.tracer.scope(site)
    return any(moved_to(node, scope) == facts.device for node in ast.walk(expr) if isinstance(node, ast.Call))


def _is_record(live: Any, facts: Facts) -> bool:
    """A mere bundle of values, such as a graph or a sample: a class of the user's that can at most move itself."""
    if any(placement.is_module(holder.value) for holder in facts.owners):
        return False
    texts = facts.tracer.classes_of(live)
    methods = [node for _, cls in texts for node in cls.body if isinstance(node, ast.FunctionDef)]
    return bool(texts) and all(
        method.name in ("__init__", "__len__", "__post_init__") or any(map(moves_own, ast.walk(method)))
        for method in methods
    )


def _is_data(live: Any) -> bool:
    return placement.kind_of(live) in ("loader", "dataset", "packed sequence")


def _is_kept_for_later(setter: Step | None, method: Any) -> bool:
    """Made in a call and kept for the next one: in forward, or under a test whether it is there already."""
    if setter is None or method is None:
        return False
    if getattr(method, "name", "") in ("forward", "__call__"):
        return True
    if getattr(method, "name", "") != "__init__" and _computes_from_inputs(setter, method):
        return True
    for outer in setter.site.source.ancestors(setter.site.node):
        if isinstance(outer, ast.If):
            test = ast.unparse(outer.test)
            if " is None" in test or " not in " in test or "hasattr" in test:
                return getattr(method, "name", "") != "__init__"
    return False


def _computes_from_inputs(setter: Step, method: Any) -> bool:
    """The kept value goes back to an argument of the method or to a call of one of the object's modules."""
    names = set(bindings.parameters(method)[1:])
    here = setter.value
    for _ in range(6):
        if here is None:
            return False
        used = {node.id for node in ast.walk(here) if isinstance(node, ast.Name)}
        tensor_calls = [n for n in ast.walk(here) if isinstance(n, ast.Call) and _is_attribute_of_self(n.func)]
        if tensor_calls and used & names:
            return True
        bound = [
            b for name in used for b in bindings.of_name(method, name) if b.value is not here and b.how == "assignment"
        ]
        here = bound[-1].value if bound else None
    return False


def _is_attribute_of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _discards_its_move(owner: Any, attribute: str, facts: Facts) -> bool:
    """A method of the object moves the attribute and throws the result away: ``self.x.to(device)``."""
    name = attribute.split("[")[0]
    for _, cls in facts.tracer.classes_of(owner):
        for node in ast.walk(cls):
            match node:
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Attribute(attr=found), attr="to" | "cuda"))):
                    if found == name:
                        return True
    return False


def _is_partly_moved(owner: Any, facts: Facts) -> bool:
    if re.match(r"(self|cls)\b", facts.stray.expression):
        return False
    devices = placement.devices_of(owner)
    return len(devices) > 1 and facts.finding.target in devices


def _from_parameters(setter: Step | None, owner: Holder) -> bool:
    """``self.norm = self.weight.norm()``: computed once from a parameter, so it stays where that was."""
    if setter is None or setter.value is None or not placement.is_module(owner.value):
        return False
    registered = {
        member.path[1:] for member in placement.members(owner.value) if member.via in ("parameter", "buffer", "module")
    }
    for node in ast.walk(setter.value):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr) if attr in registered:
                return True
    return False

"""Causes of strays that come along a way: through loops, arguments, factories, loads and moves."""

from __future__ import annotations

import ast
import functools
import re

from ipydevice import placement
from ipydevice.diagnose import bindings
from ipydevice.diagnose.cards import is_off_its_card
from ipydevice.diagnose.causes.facts import HIDDEN, LABELS, Facts, is_user_object
from ipydevice.diagnose.causes.made import WRAPPERS
from ipydevice.diagnose.evaluate import MISSING, Scope, is_of, value
from ipydevice.diagnose.finding import Finding, Site
from ipydevice.diagnose.infer import FACTORIES, call_name, device_name, keyword, moved_to, with_index
from ipydevice.diagnose.literals import is_literal, only_place
from ipydevice.diagnose.origin import Tracer
from ipydevice.diagnose.source import Source
from ipydevice.diagnose.weigh import HOST


def discarded(facts: Facts) -> str | None:
    """``x.to(device)`` as a statement of its own: a tensor is not moved in place."""
    stray = facts.stray
    if stray is None or stray.kind == "module":
        return None
    return "to_result_discarded" if discarded_move(facts.finding, facts.tracer) is not None else None


def discarded_move(finding: Finding, tracer: Tracer) -> Site | None:
    """The statement whose moved result was thrown away, for one of the names on the way."""
    assert finding.stray is not None
    places: list[tuple[Source, ast.AST, set[str]]] = []
    sites = [(finding.stray.site, finding.stray.site.node)] + [
        (s.site, s.value) for s in finding.chain if s.value is not None
    ]
    for site, expr in sites:
        names = {node.id for node in ast.walk(expr) if isinstance(node, ast.Name)}
        function = site.source.function(site.node)
        places.append((site.source, function or site.source.tree, names))
        if function is None:
            places += [(source, source.tree, names) for source in _between(finding, site.source, tracer)]
        for call in [node for node in ast.walk(expr) if isinstance(node, ast.Call)]:
            called = tracer.function_text(value(call.func, tracer.scope(site)))
            if called is not None:
                places.append((called[0], called[1], set(bindings.parameters(called[1]))))
    for source, scope, names in places:
        body = scope if not isinstance(scope, ast.Lambda) else scope.body
        for node in bindings.own_nodes(body):
            match node:
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver, attr="to" | "cuda" | "cpu"))):
                    if _concerns(receiver, names, source, node) and not _is_module_there(receiver, source, tracer):
                        return Site(source, node, None)
                case ast.Assign(targets=[ast.Name(id=moved)], value=ast.Call(func=ast.Attribute(attr="to" | "cuda"))):
                    concerned = _concerns(node.targets[0], names - {moved}, source, node)
                    if concerned and _is_only_bound(moved, node, source):
                        return Site(source, node, None)
    return None


def _is_only_bound(name: str, assignment: ast.Assign, source: Source) -> bool:
    """``for key, value in batch.items(): value = value.to(device)``: the loop's own name, which nobody reads then."""
    assert isinstance(assignment.value, ast.Call)
    loop = next((up for up in source.ancestors(assignment) if isinstance(up, (ast.For, ast.AsyncFor))), None)
    if loop is None or name not in {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}:
        return False
    inside = {id(part) for part in ast.walk(assignment)}
    return not any(
        isinstance(part, ast.Name)
        and part.id == name
        and isinstance(part.ctx, ast.Load)
        and id(part) not in inside
        and part.lineno >= assignment.lineno
        for statement in loop.body
        for part in ast.walk(statement)
    )


def _between(finding: Finding, last: Source, tracer: Tracer) -> list[Source]:
    """The cells that ran from where the stray was made to before the one that uses it, the latest first."""
    cells = tracer.sources.all_cells()
    made = finding.chain[0].site.source if finding.chain else last
    if made not in cells or last not in cells:
        return []
    return cells[cells.index(made) : cells.index(last)][::-1]


def _concerns(receiver: ast.expr, names: set[str], source: Source, node: ast.AST) -> bool:
    root: ast.AST = receiver
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    if root.id in names:
        return True
    for outer in source.ancestors(node):  # `for v in batch.values(): v.to(d)`
        if isinstance(outer, ast.For) and any(
            isinstance(n, ast.Name) and n.id == root.id for n in ast.walk(outer.target)
        ):
            return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(outer.iter))
    return False


def _is_module_there(receiver: ast.expr, source: Source, tracer: Tracer) -> bool:
    for frame in reversed(tracer.frames):
        if frame.source is source:
            live = value(receiver, frame.scope)
            if live is not MISSING:
                return placement.is_module(live)
    live = value(receiver, tracer.workspace)
    return live is not MISSING and placement.is_module(live)


def memoised(facts: Facts) -> str | None:
    """It comes out of a function that keeps what it made: ``if key not in masks: masks[key] = ...``."""
    for step in facts.finding.chain:
        function = step.site.source.function(step.site.node) if step.how == "return" else None
        if function is not None and bindings.is_memoised(function):
            return "stale_cache"
    return None


def default_card(facts: Facts) -> str | None:
    """On an accelerator only because of ``torch.set_default_device``, while what it meets is on the host."""
    return default_device(facts) if facts.device != HOST and facts.finding.target == HOST else None


def closure(facts: Facts) -> str | None:
    stray = facts.stray
    if stray is not None and any(is_of(holder.value, functools.partial) for holder in facts.owners[:-1]):
        return "closure_constant"
    if stray is None or stray.kind == "module" or not isinstance(stray.site.node, ast.Name):
        return None
    if any(step.how == "closure" for step in facts.finding.chain[:1]):
        return "closure_constant"
    code = stray.site.frame.f_code if stray.site.frame is not None else None
    if code is not None and stray.site.node.id in code.co_freevars and not code.co_name.startswith("<"):
        return "closure_constant"
    return None


def hardcoded(facts: Facts) -> str | None:
    """The device it is on stands in the code as a constant, against the one that the others have."""
    own = facts.own_move()
    if own is not None and own[1] is not None and facts.device != HOST and is_literal(own[1]):
        return "hardcoded_device"  # in the `to` of the object that holds it
    for call, site in facts.calls_on_the_way():
        scope = facts.tracer.scope(site)
        moved = moved_to(call, scope)
        if moved == HOST and ".numpy(" in site.source.segment(site.node):
            continue  # on its way to numpy, which lives there
        if moved == HOST and _is_cpu(call) and facts.tracer.entered(site) is not None:
            return None  # a helper that works on the host by design
        if moved is not None and moved == facts.device:
            if is_literal(call):
                return "hardcoded_device"
            return None
        explicit = keyword(call, "device")
        told = device_name(explicit.value) if isinstance(explicit, ast.Constant) else None
        if told is not None and with_index(told) != facts.device:
            continue  # of something else in the same expression
        if explicit is not None and _is_constant(explicit, site, facts):
            return "hardcoded_device"
        if isinstance(call.func, ast.Attribute) and call.func.attr == "type_as":
            return "hardcoded_device"
        if HOST not in (facts.device, facts.finding.target) and _is_of_settings(explicit, scope, facts.device):
            return "hardcoded_device"
    return None


def _is_of_settings(given: ast.expr | None, scope: Scope, device: str) -> bool:
    """``device=self.device`` of an object that is no module: settings that name a card."""
    if not isinstance(given, ast.Attribute) or placement.is_tensor(value(given.value, scope)):
        return False
    told = device_name(value(given, scope))
    return told is not None and with_index(told) == device and not placement.is_module(value(given.value, scope))


def _is_cpu(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "cpu"


def card_of_another_rank(facts: Facts) -> str | None:
    """One of several processes has it on another card than its own."""
    finding = facts.finding
    if facts.stray is None or HOST in (facts.device, finding.target) or checkpoint(facts):
        return None
    if finding.mismatch.family == "dataparallel":  # it spreads over all cards, and the first is another process's
        return "ddp_wrong_device" if is_off_its_card(finding.target, {facts.device}) else None
    return "ddp_wrong_device" if is_off_its_card(facts.device, {finding.target}) else None


def named_card(facts: Facts) -> str | None:
    """Between two cards a device that the code names is a mistake before anything else is."""
    if facts.stray is None or HOST in (facts.device, facts.finding.target):
        return None
    if only_place(facts.device, facts.finding.target or "", facts.tracer) is not None:
        return "hardcoded_device"
    modules = (placement.is_module(value(call.func, facts.tracer.scope(site))) for call, site in facts.calls())
    return None if any(modules) else hardcoded(facts)  # what comes out of a module is where that is


def _is_constant(given: ast.expr, site: Site, facts: Facts) -> bool:
    """Whether a device, followed to where it was set, is one that the code names: ``torch.device("cuda")``."""
    chain = facts.tracer.trace(Site(site.source, given, site.frame))
    last = chain[-1].site if chain else None
    if last is not None and last.source.function(last.node) is None and last.source.class_of(last.node) is None:
        return False  # `device = "cuda"` at the top of a notebook is where a device belongs
    ends = [given] + [step.value for step in chain if step.value is not None]
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and device_name(node.value.lower()) is not None
        for node in ast.walk(ends[-1])
        if not (isinstance(ends[-1], ast.Call) and "is_available" in ast.unparse(ends[-1]) and facts.device == HOST)
    )


def checkpoint(facts: Facts) -> str | None:
    for call, site in facts.calls():
        name = call_name(call, facts.tracer.scope(site))
        text = site.source.segment(call.func)
        if (name == "load" and "torch" in text) or text.endswith(("load_file", "safe_open", "load_model")):
            return "checkpoint_location"
    return None


def split_model(facts: Facts) -> str | None:
    """Two cards, and the value comes out of a part of the model on the other card."""
    finding = facts.finding
    if finding.stray is None or finding.target is None or "cpu" in (facts.device, finding.target):
        return None
    if finding.stray.kind == "module":
        return "model_split_multi_gpu"
    for call, site in facts.calls():
        scope = facts.tracer.scope(site)
        live = value(call.func, scope)
        if placement.is_module(live):
            return "model_split_multi_gpu"
    frame = finding.failed.frame
    asked = [frame.f_locals.get("self")] if frame is not None else []
    for _, expr, site in facts.steps():  # `net.aux` of a model with parts on either
        scope = facts.tracer.scope(site)
        asked += [value(part.value, scope) for part in ast.walk(expr) if isinstance(part, ast.Attribute)]
    both = {facts.device, finding.target}
    split = any(placement.is_module(live) and both <= set(placement.devices_of(live)) for live in asked)
    return "model_split_multi_gpu" if split else None


def default_device(facts: Facts) -> str | None:
    names = {call_name(call, facts.tracer.scope(site)) for call, site in facts.calls()}
    made = bool(names & (FACTORIES - WRAPPERS))
    if not made and facts.finding.mismatch.family != "generator":
        return None
    for source in facts.tracer.sources.all_cells():
        for node in source.nodes:
            if isinstance(node, ast.Call):
                text = source.segment(node.func)
                if text.endswith(("set_default_device", "set_default_tensor_type")):
                    return "default_device_global"
    return None


def collection(facts: Facts) -> str | None:
    """One item of a list for cat or stack is elsewhere than its siblings."""
    finding = facts.finding
    op = finding.mismatch.op or ""
    if finding.mismatch.argument == "tensors" or op in ("cat", "stack"):
        on_target = [o for o in finding.operands if o.device == finding.target]
        listed = finding.stray is not None and isinstance(finding.stray.site.node, (ast.ListComp, ast.GeneratorExp))
        if (len(finding.operands) > 1 and on_target) or listed:
            return "stray_in_collection"
    return None


def nested_batch(facts: Facts) -> str | None:
    """A part of a batch stayed behind while its siblings were moved."""
    if len(facts.owners) < 2 or facts.stray.kind == "module":
        return None
    top = facts.owners[0].value
    if type(top) in (list, tuple) and facts.finding.mismatch.op in ("cat", "stack"):
        return None  # a list that was made to be joined
    if (
        type(top) in (dict, list, tuple)
        or not is_user_object(top)
        or hasattr(type(top), "_fields")
        or hasattr(type(top), "__dataclass_fields__")
    ):
        devices = placement.devices_of(top)
        if facts.finding.target in devices and len(devices) > 1 and facts.was_moved_in_parts():
            return "nested_batch_partly_moved"
    return None


def index(facts: Facts) -> str | None:
    finding = facts.finding
    if finding.stray is None or finding.stray.kind == "module":
        return None
    if finding.mismatch.op == "index_select" and any(o.kind == "module" for o in finding.operands):
        return None  # an embedding: its ids are an input like any other
    if finding.mismatch.family == "indexing" and finding.stray.role == "value":
        return "index_device" if isinstance(finding.stray.site.node, ast.Attribute) else None  # a table that is kept
    is_index = finding.stray.role in ("index", "indices") or (
        finding.mismatch.argument == "index" and finding.mismatch.argument_device == facts.device
    )
    return "index_device" if is_index else None


def index_of_host_data(facts: Facts) -> str | None:
    """An index on an accelerator selects from data that stays on the host, whoever keeps the index."""
    finding = facts.finding
    stays = facts.device != HOST and finding.target == HOST and finding.mismatch.family == "indexing"
    return index(facts) if stays and finding.stray is not None and finding.stray.role == "index" else None


def mask(facts: Facts) -> str | None:
    """A mask that is no part of a batch."""
    finding = facts.finding
    if finding.stray is None or finding.mismatch.op != "masked_fill":
        return None
    return None if any(step.how == "loop" for step in finding.chain) or not finding.chain else _only_index(facts)


def _only_index(facts: Facts) -> str | None:
    """Computed from other tensors here, by a comparison: an index, not an input."""
    last = facts.finding.chain[-1].value
    return "index_device" if isinstance(last, ast.Compare) else None


def rnn_state(facts: Facts) -> str | None:
    finding = facts.finding
    if finding.stray is None or facts.stray.kind == "module":
        return None
    names = re.findall(r"[A-Za-z_]\w*", facts.stray.expression)
    if finding.mismatch.family == "rnn":
        told = finding.mismatch.roles.get("hidden") == facts.device
        return "rnn_state" if told or any(HIDDEN.search(name) for name in names) else None
    return "rnn_state" if any(re.search(r"hidden|^(h|c)(_?(0|n|t|prev|x))$", name, re.I) for name in names) else None


def input(facts: Facts) -> str | None:
    finding = facts.finding
    if finding.stray is None:
        return None
    last = facts.stray.expression.rsplit(".", 1)[-1].strip("'\"]").rsplit("[", 1)[-1].strip("'\"")
    in_loss = finding.mismatch.argument in ("target",) or "loss" in (finding.mismatch.op or "")
    if (
        LABELS.search(last)
        or in_loss
        or re.search(r"loss|criterion|crit\b", finding.failed.source.segment(finding.failed.node))
    ):
        names = {o.expression for o in finding.operands}
        if LABELS.search(last) or (in_loss and len(names) > 1):
            return "label_not_moved"
    return "input_not_moved"

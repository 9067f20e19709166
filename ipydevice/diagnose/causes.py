"""What kind of mistake it is: one rule per class of the taxonomy, each on facts.

The rules are tried from the most to the least specific; the first that holds gives the
class. A rule reads the finding and asks the tracer, it never guesses by the message's order.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import bindings, holders
from ipydevice.diagnose.culprit import is_literal_device
from ipydevice.diagnose.evaluate import FACTORIES, LIKES, MISSING, call_name, keyword, moved_to, value
from ipydevice.diagnose.finding import Finding, Site, Step
from ipydevice.diagnose.holders import Holder
from ipydevice.diagnose.origin import Tracer
from ipydevice.diagnose.source import Source

LABELS = re.compile(r"(^|_)(y|yb|yy|ys|t|tb|labels?|targets?|tgts?|gt|truth|ground_truth|classes|answers?)(_|\d|$)", re.I)
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

    def nearest(self, test: Callable[[Any], bool]) -> Holder | None:
        """The innermost owner that passes a test."""
        return next((holder for holder in reversed(self.owners[:-1]) if test(holder.value)), None)


Rule = Callable[[Facts], str | None]


def classify(facts: Facts) -> str:
    """The class of the taxonomy, or "unknown"."""
    for rule in RULES:
        found = rule(facts)
        if found is not None:
            return found
    return "unknown"


# By the message --------------------------------------------------------------------------------


def _by_message(facts: Facts) -> str | None:
    mismatch = facts.finding.mismatch
    if facts.device == "meta":
        return "meta_not_materialized"
    if mismatch.kind == "availability":
        return "no_accelerator"
    wrapped = mismatch.wrapped_in or ""
    if "replica" in wrapped:
        return "dp_replica_state"
    if "DataLoader" in wrapped or "fork" in mismatch.text:
        return "cuda_in_dataset"
    if mismatch.kind == "meta":
        return "meta_not_materialized"
    if mismatch.family == "numpy":
        return "to_numpy"
    if mismatch.family == "generator":
        return "generator_device"
    if mismatch.host_required is not None:
        return "must_be_cpu"
    return None


# Optimizers and averages -------------------------------------------------------------------------


def _optimizer_state(facts: Facts) -> str | None:
    if facts.stray is None:
        return None
    if facts.stray.via == "state" or any(placement.is_optimizer(holder.value) for holder in facts.owners):
        return "optimizer_state"
    names = [holder.path for holder in facts.owners[:-1]] + [type(holder.value).__name__ for holder in facts.owners[:-1]]
    if any(SHADOW.search(name) for name in names) or SHADOW.search(facts.stray.expression):
        return "ema_shadow"
    owner = facts.nearest(_is_user_object)
    if owner is not None and not placement.is_module(owner.value) and _steps_parameters(owner.value):
        return "optimizer_state"
    return None


def _is_user_object(live: Any) -> bool:
    """An object with attributes of its own: no container, function or class."""
    return not holders.is_container(live) and type(live).__module__ not in ("builtins", "functools")


def _steps_parameters(live: Any) -> bool:
    """Whether an object looks like an optimizer or a wrapper of one: it can step() and holds parameters."""
    if not any("step" in cls.__dict__ for cls in type(live).__mro__):
        return False
    return any(placement.is_parameter(found.value) for found in placement.walk(live, limit=200))


# Modules -----------------------------------------------------------------------------------------


def _module(facts: Facts) -> str | None:
    stray, finding = facts.stray, facts.finding
    if stray is None or stray.kind != "module":
        return None
    node = stray.site.node
    if isinstance(node, ast.Call):
        return "module_built_in_forward"
    chain = finding.chain
    if chain and chain[-1].value is not None and _is_in_method_called_forward(chain[-1].site):
        if isinstance(chain[-1].value, ast.Call) and chain[-1].how == "assignment":
            return "module_built_in_forward"
    for outer, inner in zip(facts.owners, facts.owners[1:], strict=False):
        if placement.is_module(outer.value) and inner.via == "attribute" and holders.is_container(inner.value):
            return "module_in_plain_container"
    name = stray.expression
    kind = type(stray.value).__name__ if stray.known else ""
    if SHADOW.search(name) or SHADOW.search(kind):
        return "ema_shadow"
    if METRIC.search(kind) or METRIC.search(name):
        return "metric_state"
    if LOSS.search(kind):
        return "loss_weight"
    if _moved_by_framework(facts):
        return "framework_moved_model"
    root = facts.owners[0].value if facts.owners else None
    if len(facts.owners) > 1 and placement.is_module(facts.owners[-2].value):
        if _added_after_move(facts):
            return "module_added_after_move"
    del root
    return "model_not_moved"


def _is_in_method_called_forward(site: Site) -> bool:
    function = site.source.function(site.node)
    return getattr(function, "name", "") in ("forward", "__call__")


def _added_after_move(facts: Facts) -> bool:
    """The submodule was put into a model that is elsewhere: assigned on it in a cell, or by a method other than __init__."""
    for step in facts.finding.chain:
        if step.how == "attribute":
            function = step.site.source.function(step.site.node)
            return getattr(function, "name", "") != "__init__"
    return False


def _moved_by_framework(facts: Facts) -> bool:
    """A library's object was given the model and left it on the host: ``trainer.fit(model)``."""
    name = facts.stray.expression.split(".")[0].split("[")[0]
    for source in facts.tracer.sources.all_cells():
        for call in (node for node in ast.walk(source.tree) if isinstance(node, ast.Call)):
            if not (isinstance(call.func, ast.Attribute) and call.func.attr in ("fit", "train", "run", "test", "evaluate", "validate", "predict", "find", "prepare", "lr_find")):
                continue
            if any(isinstance(arg, ast.Name) and arg.id == name for arg in (*call.args, *(kw.value for kw in call.keywords))):
                return True
    return False


def _loss_or_metric_tensor(facts: Facts) -> str | None:
    """A buffer, or a plain tensor, that a criterion or a metric holds."""
    stray = facts.stray
    if stray is None or stray.kind == "module":
        return None
    name = facts.owners[-1].path if len(facts.owners) > 1 else stray.expression
    argument = facts.finding.mismatch.argument or ""
    if len(facts.owners) > 1 and (argument in ("weight", "pos_weight") or _is_loss_call(facts)) and WEIGHT.search(_last(name)):
        return "loss_weight"
    for holder in reversed(facts.owners[:-1]):
        if not _is_user_object(holder.value):
            continue
        kind = type(holder.value).__name__
        methods = {name for cls in type(holder.value).__mro__ for name in cls.__dict__}
        if {"update", "compute"} <= methods or (METRIC.search(kind) and "update" in methods):
            return "metric_state"
        if METRIC.search(kind) and not placement.is_module(holder.value):
            return "metric_state"
        if LOSS.search(kind) and stray.via in ("buffer", "parameter", "attribute", "item"):
            return "loss_weight" if WEIGHT.search(_last(name)) else None
        break
    return None


def _last(expression: str) -> str:
    """``pos_weight`` of ``LOSSES['a'].keywords['pos_weight']``: the last name in an expression."""
    names = re.findall(r"[A-Za-z_]\w*", expression)
    return names[-1] if names else expression


def _is_loss_call(facts: Facts) -> bool:
    failed = facts.finding.failed
    return bool(LOSS.search(failed.source.segment(failed.node))) or "loss" in (facts.finding.mismatch.op or "")


# Tensors kept by objects ---------------------------------------------------------------------------


def _kept_by_object(facts: Facts) -> str | None:
    stray = facts.stray
    if stray is None or stray.kind == "module" or len(facts.owners) < 2:
        return None
    owner = facts.nearest(_is_user_object)
    if owner is None or callable(getattr(type(owner.value), "__torch_function__", None)):
        return None
    if not placement.is_module(owner.value) and _is_data(owner.value):
        return None
    attribute = facts.owners[facts.owners.index(owner) + 1].path.rsplit(".", 1)[-1]
    if placement.is_module(owner.value) and stray.via in ("parameter", "buffer"):
        return "module_added_after_move" if _added_after_move(facts) else "model_not_moved"
    if not placement.is_module(owner.value) and _is_partly_moved(owner.value, facts):
        return "nested_batch_partly_moved"
    setter = next((step for step in facts.finding.chain if step.how in ("attribute", "item")), None)
    method = setter.site.source.function(setter.site.node) if setter is not None else None
    if facts.finding.mismatch.family == "rnn" or HIDDEN.search(attribute):
        return "rnn_state"
    if CACHE.search(attribute) or _is_kept_for_later(setter, method):
        return "stale_cache"
    if _from_parameters(setter, owner):
        return "derived_tensor_in_init"
    literal = _hardcoded(facts)
    if literal is not None:
        return literal
    return "plain_tensor_attribute"


def _is_data(live: Any) -> bool:
    return placement.kind_of(live) in ("loader", "dataset", "packed sequence")


def _is_kept_for_later(setter: Step | None, method: Any) -> bool:
    """Made in a call and kept for the next one: in forward, or under a test whether it is there already."""
    if setter is None or method is None:
        return False
    if getattr(method, "name", "") in ("forward", "__call__"):
        return True
    for outer in setter.site.source.ancestors(setter.site.node):
        if isinstance(outer, ast.If):
            test = ast.unparse(outer.test)
            if " is None" in test or " not in " in test or "hasattr" in test:
                return getattr(method, "name", "") != "__init__"
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
    registered = {member.path[1:] for member in placement.members(owner.value) if member.via in ("parameter", "buffer", "module")}
    for node in ast.walk(setter.value):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr) if attr in registered:
                return True
    return False


# Values on the way -----------------------------------------------------------------------------------


def _discarded_move(facts: Facts) -> str | None:
    """``x.to(device)`` as a statement of its own: a tensor is not moved in place."""
    stray = facts.stray
    if stray is None or stray.kind == "module":
        return None
    return "to_result_discarded" if discarded_move(facts.finding, facts.tracer) is not None else None


def discarded_move(finding: Finding, tracer: Tracer) -> Site | None:
    """The statement whose moved result was thrown away, for one of the names on the way."""
    assert finding.stray is not None
    places: list[tuple[Source, ast.AST, set[str]]] = []
    sites = [(finding.stray.site, finding.stray.site.node)] + [(s.site, s.value) for s in finding.chain if s.value is not None]
    for site, expr in sites:
        names = {node.id for node in ast.walk(expr) if isinstance(node, ast.Name)}
        function = site.source.function(site.node)
        places.append((site.source, function or site.source.tree, names))
        for call in [node for node in ast.walk(expr) if isinstance(node, ast.Call)]:
            called = tracer.function_text(value(call.func, tracer.scope(site)), call)
            if called is not None:
                places.append((called[0], called[1], set(bindings.parameters(called[1]))))
    for source, scope, names in places:
        body = scope if not isinstance(scope, ast.Lambda) else scope.body
        for node in bindings.own_nodes(body):
            match node:
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver, attr="to" | "cuda" | "cpu"))):
                    if _concerns(receiver, names, source, node) and not _is_module_there(receiver, source, tracer):
                        return Site(source, node, None)
    return None


def _concerns(receiver: ast.expr, names: set[str], source: Source, node: ast.AST) -> bool:
    root: ast.AST = receiver
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if not isinstance(root, ast.Name):
        return False
    if root.id in names:
        return True
    for outer in source.ancestors(node):  # `for v in batch.values(): v.to(d)`
        if isinstance(outer, ast.For) and any(isinstance(n, ast.Name) and n.id == root.id for n in ast.walk(outer.target)):
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


def _closure(facts: Facts) -> str | None:
    stray = facts.stray
    if stray is None or stray.kind == "module" or not isinstance(stray.site.node, ast.Name):
        return None
    if any(step.how == "closure" for step in facts.finding.chain[:1]):
        return "closure_constant"
    code = stray.site.frame.f_code if stray.site.frame is not None else None
    if code is not None and stray.site.node.id in code.co_freevars and not code.co_name.startswith("<"):
        return "closure_constant"
    return None


def _hardcoded_rule(facts: Facts) -> str | None:
    return _hardcoded(facts)


def _hardcoded(facts: Facts) -> str | None:
    """The device it is on stands in the code as a constant, against the one that the others have."""
    for call, site in facts.calls():
        scope = facts.tracer.scope(site)
        moved = moved_to(call, scope)
        if moved is not None and moved == facts.device:
            if is_literal_device(call):
                return "hardcoded_device"
            return None
        explicit = keyword(call, "device")
        if isinstance(explicit, ast.Constant) and explicit.value is not None:
            return "hardcoded_device"
        if isinstance(call.func, ast.Attribute) and call.func.attr == "type_as":
            return "hardcoded_device"
    return None


def _checkpoint(facts: Facts) -> str | None:
    for call, site in facts.calls():
        name = call_name(call, facts.tracer.scope(site))
        text = site.source.segment(call.func)
        if (name == "load" and "torch" in text) or text.endswith(("load_file", "safe_open", "load_model")):
            return "checkpoint_location"
    return None


def _split_model(facts: Facts) -> str | None:
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
    return None


def _default_device(facts: Facts) -> str | None:
    if not any(call_name(call, facts.tracer.scope(site)) in FACTORIES for call, site in facts.calls()):
        return None
    for source in facts.tracer.sources.all_cells():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call):
                text = source.segment(node.func)
                if text.endswith(("set_default_device", "set_default_tensor_type")):
                    return "default_device_global"
    return None


def _collection(facts: Facts) -> str | None:
    """One item of a list for cat or stack is elsewhere than its siblings."""
    finding = facts.finding
    op = finding.mismatch.op or ""
    if finding.mismatch.argument == "tensors" or op in ("cat", "stack"):
        on_target = [o for o in finding.operands if o.device == finding.target]
        if len(finding.operands) > 1 and on_target:
            return "stray_in_collection"
    return None


def _nested_batch(facts: Facts) -> str | None:
    """A part of a batch stayed behind while its siblings were moved."""
    if len(facts.owners) < 2 or facts.stray.kind == "module":
        return None
    top = facts.owners[0].value
    if type(top) in (dict, list, tuple) or not _is_user_object(top) or hasattr(type(top), "_fields") or hasattr(type(top), "__dataclass_fields__"):
        devices = placement.devices_of(top)
        if facts.finding.target in devices and len(devices) > 1:
            return "nested_batch_partly_moved"
    return None


def _index(facts: Facts) -> str | None:
    finding = facts.finding
    if finding.stray is None or finding.stray.kind == "module":
        return None
    if finding.mismatch.op == "index_select" and any(o.kind == "module" for o in finding.operands):
        return None  # an embedding: its ids are an input like any other
    role = next((o.role for o in finding.operands if o.site is not None and o.site.node is finding.stray.site.node), "")
    is_index = role in ("index", "indices") or (finding.mismatch.argument == "index" and finding.mismatch.argument_device == facts.device)
    return "index_device" if is_index else None


def _mask(facts: Facts) -> str | None:
    """A mask that is no part of a batch."""
    finding = facts.finding
    if finding.stray is None or finding.mismatch.family != "masked_fill":
        return None
    return None if any(step.how == "loop" for step in finding.chain) or not finding.chain else _only_index(facts)


def _only_index(facts: Facts) -> str | None:
    """Computed from other tensors here, by a comparison: an index, not an input."""
    last = facts.finding.chain[-1].value
    return "index_device" if isinstance(last, ast.Compare) else None


def _rnn_state(facts: Facts) -> str | None:
    finding = facts.finding
    if finding.stray is None or facts.stray.kind == "module":
        return None
    names = re.findall(r"[A-Za-z_]\w*", facts.stray.expression)
    if finding.mismatch.family == "rnn":
        told = finding.mismatch.roles.get("hidden") == facts.device
        return "rnn_state" if told or any(HIDDEN.search(name) for name in names) else None
    return "rnn_state" if any(re.search(r"hidden|^(h|c)(_?(0|n|t|prev|x))$", name, re.I) for name in names) else None


def _library_result(facts: Facts) -> str | None:
    """The value comes out of a function that is neither torch's nor the user's."""
    for step, expr, site in facts.steps():
        node = expr
        while isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        if not isinstance(node, ast.Call):
            continue
        scope = facts.tracer.scope(site)
        name = call_name(node, scope)
        if name == "from_numpy" or (name in ("tensor", "as_tensor") and node.args and _is_foreign(node.args[0], facts, site)):
            return "library_returns_cpu"
        if not name and _is_foreign(node, facts, site):
            return "library_returns_cpu"
        del step
    return None


def _is_foreign(node: ast.expr, facts: Facts, site: Site) -> bool:
    """A call of a function of an installed library other than torch."""
    if not isinstance(node, ast.Call):
        return False
    live = value(node.func, facts.tracer.scope(site))
    if live is MISSING or isinstance(live, type):
        return False
    module = getattr(live, "__module__", None) if type(live).__name__ in ("function", "builtin_function_or_method", "method", "ufunc") else None
    if not isinstance(module, str):
        return type(live).__name__ in ("ufunc", "_ArrayFunctionDispatcher")
    top = module.split(".")[0]
    if top in ("torch", "builtins", "__main__", "ipydevice", "copy", "_operator", "operator"):
        return False
    return facts.tracer.function_text(live, node) is None


def _fresh(facts: Facts) -> str | None:
    """Made by one of torch's factories without a device: in a function, or on the line itself."""
    found = fresh_factory(facts.finding, facts.tracer)
    if found is None:
        return None
    call, site = found
    function = site.source.function(call)
    stray = facts.stray
    if function is None and not (stray is not None and any(node is call for node in ast.walk(stray.site.node))):
        return None
    return "fresh_tensor_no_device"


def fresh_factory(finding: Finding, tracer: Tracer) -> tuple[ast.Call, Site] | None:
    """The call that made the stray on the default device, and where."""
    facts = Facts(finding, tracer, [])
    for call, site in facts.calls():
        scope = tracer.scope(site)
        if moved_to(call, scope) is not None:
            return None
        name = call_name(call, scope)
        if name in FACTORIES and name not in LIKES and keyword(call, "device") is None:
            return call, site
    return None


def _input(facts: Facts) -> str | None:
    finding = facts.finding
    if finding.stray is None:
        return None
    last = facts.stray.expression.rsplit(".", 1)[-1].strip("'\"]").rsplit("[", 1)[-1].strip("'\"")
    in_loss = finding.mismatch.argument in ("target",) or "loss" in (finding.mismatch.op or "")
    if LABELS.search(last) or in_loss or re.search(r"loss|criterion|crit\b", finding.failed.source.segment(finding.failed.node)):
        names = {o.expression for o in finding.operands}
        if LABELS.search(last) or (in_loss and len(names) > 1):
            return "label_not_moved"
    return "input_not_moved"


RULES: tuple[Rule, ...] = (
    _by_message,
    _optimizer_state,
    _discarded_move,
    _loss_or_metric_tensor,
    _module,
    _kept_by_object,
    _closure,
    _rnn_state,
    _checkpoint,
    _default_device,
    _hardcoded_rule,
    _split_model,
    _collection,
    _nested_batch,
    _index,
    _library_result,
    _fresh,
    _mask,
    _input,
)

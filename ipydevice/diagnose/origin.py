"""Where a value came from: step by step from the place of failure to the place where it was made.

Inside a function the way leads over its assignments, loops and parameters; a parameter
leads to the call in the frame outside, or, where that frame is gone, to a call in the
cells; a global name leads to the cells in the order in which they ran, the latest first.
"""

from __future__ import annotations

import ast
from functools import cached_property
from types import FrameType, MethodType, ModuleType
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import bindings, holders
from ipydevice.diagnose.bindings import Binding, fillings, in_force, is_empty, most_telling
from ipydevice.diagnose.code import Code
from ipydevice.diagnose.evaluate import MISSING, is_exactly, is_of, value
from ipydevice.diagnose.finding import How, Site, Step
from ipydevice.diagnose.frames import Frame, Sources
from ipydevice.diagnose.infer import FACTORIES, builds_module, call_name, device, is_conversion, is_passive, keyword
from ipydevice.diagnose.meeting import view_of
from ipydevice.diagnose.source import FunctionNode, Source
from ipydevice.placement.kinds import class_dicts

LONGEST = 16  # steps of one chain: a bound by count, never by the clock


class Tracer(Code):
    """Follows values backwards through the frames of one error and the cells that ran."""

    def __init__(self, sources: Sources, frames: list[Frame], namespace: dict[str, Any]) -> None:
        super().__init__(sources, frames, namespace)
        self.namespace = namespace
        self._traced: dict[tuple[ast.AST, FrameType | None, str | None], list[Step]] = {}
        self._indexes: dict[int, holders.Index] = {}

    @cached_property
    def held(self) -> holders.Index:
        """Who holds what in the workspace."""
        return holders.Index(self.namespace.items())

    @cached_property
    def models(self) -> holders.Index:
        """What the modules of the workspace hold."""
        return holders.Index([(name, live) for name, live in self.namespace.items() if placement.is_module(live)])

    def model_around(self, live: Any) -> list[holders.Holder]:
        """The way from a model of the workspace to a part of it, also where the part has a name of its own there."""
        found = self.models.find(live)
        if len(found) < 2 and placement.is_module(live):
            others = [(n, m) for n, m in self.namespace.items() if placement.is_module(m) and m is not live]
            found = holders.Index(others).find(live) or found
        return found

    def held_by(self, name: str, live: Any) -> holders.Index:
        """What one object holds, under the name that it has in a frame: ``self``."""
        if id(live) not in self._indexes:
            self._indexes[id(live)] = holders.Index([(name, live)])
        return self._indexes[id(live)]

    def trace(self, site: Site, stray_device: str | None = None) -> list[Step]:
        """The steps from an expression outwards; the last one is the origin."""
        key = (site.node, site.frame, stray_device)
        if key not in self._traced:
            self._traced[key] = self._trace(site, stray_device)
        return list(self._traced[key])

    def _trace(self, site: Site, stray_device: str | None) -> list[Step]:
        steps: list[Step] = []
        seen: set[int] = set()
        here: Site | None = site
        key: str | None = None  # of a dictionary that has been followed, not yet its item: ``adv = rollout["adv"]``
        while here is not None and len(steps) < LONGEST:
            key = _key(here.node) or key
            step = self._step(here, stray_device, steps[-1].part if steps else None)
            if step is None or step.how == "import" or id(step.site.node) in seen:
                break
            seen.add(id(step.site.node))
            if step.part is None and steps and steps[-1].part is not None:
                _carry(step, steps[-1].part)
            steps.append(step)
            if key is not None and step.value is not None:
                put = self._put_under(key, step)
                if put is not None:
                    step = put
                    steps.append(put)
                if put is not None or not isinstance(step.value, (ast.Name, ast.Attribute)):
                    key = None
            here = Site(step.site.source, step.value, step.site.frame) if step.value is not None else None
        return steps

    def _put_under(self, key: str, step: Step) -> Step | None:
        """Where the item was put into the dictionary that a step leads to; its display is left for the item's value."""
        match step.value:
            case ast.Name() | ast.Attribute():
                return self._of_target(
                    Site(step.site.source, step.value, step.site.frame), step.value, f"{ast.unparse(step.value)}[{key}]"
                )
            case ast.Dict(keys=keys, values=values):
                held = {ast.unparse(k): v for k, v in zip(keys, values, strict=True) if k is not None}
                step.value = held.get(key, step.value)
            case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
                step.value = next((kw.value for kw in keywords if repr(kw.arg) == key), step.value)
        return None

    def trace_global(self, name: str) -> list[Step]:
        """The steps from a name of the workspace outwards, as it stands now."""
        for source in self._texts_of_cells():
            found = bindings.made(source.tree, name)
            binding = found[-1] if found else self._by_global_statement(source, name)
            if binding is None:
                continue
            if binding.how == "import":
                return []
            step = self._binding_step(binding, source, self.frame_running(source, binding.node))
            onward = self.trace(Site(source, step.value, step.site.frame)) if step.value is not None else []
            return [step, *onward]
        return []

    # One step ------------------------------------------------------------------------------

    def _step(self, site: Site, stray_device: str | None, part: int | None = None) -> Step | None:
        node = view_of(site.node, self.scope(site)) if isinstance(site.node, ast.expr) else site.node
        if isinstance(site.node, ast.Subscript):
            filled = self._of_target(site, site.node)
            if filled is not None:
                return filled
        match node:
            case ast.Name():
                return self._of_name(site, node)
            case ast.Attribute():
                return self._of_attribute(site, node)
            case ast.Call():
                return self._of_call(site, node, stray_device, part)
            case ast.BinOp() | ast.Compare():
                others = [node.right] if isinstance(node, ast.BinOp) else node.comparators
                side = self._guilty_side(site, (node.left, *others), stray_device)
                return None if side is None else self._step(Site(site.source, side, site.frame), stray_device)
            case ast.IfExp(body=one, orelse=another):
                side = another if isinstance(one, ast.Constant) else one
                return self._step(Site(site.source, side, site.frame), stray_device, part)
            case ast.NamedExpr():
                return Step("assignment", Site(site.source, node, site.frame), node.value)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return self._step(Site(site.source, node.elt, site.frame), stray_device)
            case ast.Tuple(elts=elts) if part is not None and part < len(elts):
                return self._step(Site(site.source, elts[part], site.frame), stray_device)
            case ast.Tuple() | ast.List():
                side = self._guilty_side(site, tuple(node.elts), stray_device)
                return None if side is None else self._step(Site(site.source, side, site.frame), stray_device)
        return None

    def _guilty_side(self, site: Site, sides: tuple[ast.expr, ...], stray_device: str | None) -> ast.expr | None:
        scope = self.scope(site)
        found = next((side for side in sides if stray_device and device(side, scope) == stray_device), None)
        gone = site.frame is None or all(value(view_of(side, scope), scope) is MISSING for side in sides)
        if found is None and gone:  # its names are gone: all sides were where the result was
            found = next((side for side in sides if not isinstance(side, ast.Constant)), None)
        return found

    def _of_name(self, site: Site, node: ast.Name) -> Step | None:
        source, name = site.source, node.id
        inner: ast.AST = node
        for outer in source.ancestors(node):
            if isinstance(outer, bindings.COMPREHENSIONS):
                loop = bindings.of_comprehension(outer, name)
                if loop is not None and inner not in outer.generators[:1]:
                    return Step("loop", Site(source, outer, site.frame), loop.value)
            inner = outer
        function = source.function(node)
        frame = site.frame
        nested = False
        while function is not None:
            binding = bindings.latest(bindings.made(function, name), source, node)
            is_parameter = name in bindings.parameters(function)
            if binding is not None and not (
                is_parameter and binding.line >= node.lineno and binding.how == "assignment"
            ):
                filled = fillings(function, name) if is_empty(binding.value) else []
                return self._binding_step(filled[-1] if filled else binding, source, frame)
            if is_parameter:
                return self._of_parameter(source, function, name, frame, closure=nested)
            function = source.function(function)
            nested = True
            frame = self._live_frame(source, function) if function is not None else None
        return self._of_global(site, name)

    def _binding_step(self, binding: Binding, source: Source, frame: FrameType | None, how: How | None = None) -> Step:
        if binding.how == "define":
            return Step("assignment", Site(source, binding.node, frame))
        kind: How = how or ("with" if binding.how == "with" else "import" if binding.how == "import" else binding.how)
        given, part = binding.value, binding.part
        if part is not None and isinstance(given, ast.Tuple) and part < len(given.elts):
            given, part = given.elts[part], None
        return Step(kind, Site(source, binding.node, frame), given, part)

    # Parameters ----------------------------------------------------------------------------

    def _of_parameter(
        self, source: Source, function: FunctionNode, name: str, frame: FrameType | None, *, closure: bool
    ) -> Step | None:
        how: How = "closure" if closure else "argument"
        live = next((f for f in self.frames if f.frame is frame), None)
        if live is None and function not in self._entered:
            live = self._frame_of(source, function)
        if live is not None:
            given = self.argument_in_caller(live, function, name)
            if given is not None:
                return Step(how, *given)
        entered = self._entered.get(function)
        if live is None and entered is not None:
            passed = bindings.argument_for(entered.call, function, name, entered.bound)
            if passed is not None:
                return Step(how, Site(entered.site.source, entered.call, entered.site.frame), passed)
        called = self._call_in_cells(source, function, name)
        if called is not None and entered is None:
            return Step(how, *called)
        default = bindings.default_of(function, name)
        if default is not None:
            return Step("closure", Site(source, default, None), default)
        return None

    # Global names --------------------------------------------------------------------------

    def _of_global(self, site: Site, name: str) -> Step | None:
        for source, until in self._module_texts(site):
            binding = in_force(bindings.made(source.tree, name), source, until)
            if binding is None:
                binding = self._by_global_statement(source, name)
            if binding is not None:
                filled = self._filled(name) if is_empty(binding.value) else None
                return filled or self._binding_step(binding, source, self.frame_running(source, binding.node))
        return None

    def _filled(self, name: str) -> Step | None:
        """Where a container of the workspace was filled last, in a cell or in a function of one."""
        for source in self._texts_of_cells():
            found = fillings(source.tree, name)
            if found:
                return self._binding_step(found[-1], source, self.frame_running(source, found[-1].node))
        return None

    # Attributes and items ------------------------------------------------------------------

    def _of_target(self, site: Site, node: ast.expr, text: str = "") -> Step | None:
        """Where exactly this attribute or item was assigned, in the same function or at a cell's top level.

        `text` stands for another one that is spoken of there: ``roll["adv"]`` where `node` is ``roll``.
        """
        text = text or ast.unparse(node)
        function = site.source.function(node)
        running = [*site.source.ancestors(site.node)]  # `d[k] = d[k] + x` has not assigned anything yet

        def assigned_in(tree: ast.AST) -> list[Binding]:
            return [binding for binding in bindings.of_target(tree, text) if binding.node not in running]

        if function is not None and not isinstance(function, ast.Lambda):
            binding = bindings.latest(assigned_in(function), site.source, site.node)
            if binding is not None:
                return self._binding_step(binding, site.source, site.frame, "item")
        for source, until in self._module_texts(site):
            binding = in_force(assigned_in(source.tree), source, until)
            if binding is not None:
                how: How = "item" if text.endswith("]") else "attribute"
                return self._binding_step(binding, source, self.frame_running(source, binding.node), how)
        return None

    def _of_attribute(self, site: Site, node: ast.Attribute) -> Step | None:
        assigned = self._of_target(site, node)
        if assigned is not None and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            return assigned
        owner = value(node.value, self.scope(site))
        if is_of(owner, ModuleType):
            return None
        if owner is not MISSING:
            step = self.of_attribute_of(owner, node.attr) or self.of_property(site, owner, node.attr)
            if step is not None:
                return step
        else:
            cls = site.source.class_of(node)
            if cls is not None:
                chosen = most_telling(bindings.of_attribute(cls, node.attr))
                if chosen is not None:
                    return self._binding_step(chosen, site.source, None, "attribute")
        return assigned or self._step(Site(site.source, node.value, site.frame), None)

    def of_property(self, site: Site, owner: Any, name: str) -> Step | None:
        """What a property of the user's gives back, by its text."""
        found: Any = next((space[name] for space in class_dicts(type(owner)) if name in space), None)
        getter = (
            found.fget if is_exactly(found, property) else found.func if is_exactly(found, cached_property) else None
        )
        if getter is None:
            return None
        text = self.enter(MethodType(getter, owner), ast.Call(ast.Name(name), [], []), site)
        return self._returned(*text, None) if text is not None else None

    def of_attribute_of(self, owner: Any, name: str) -> Step | None:
        """Where attribute or submodule `name` of a live object was set: in a cell, or by a method of its class."""
        for source in self._texts_of_cells():
            for node in reversed(list(bindings.own_nodes(source.tree))):
                given = bindings.put_into(node, name, lambda expr: value(expr, self.workspace) is owner)
                if given is not None:
                    return Step("attribute", Site(source, node, self.frame_running(source, node)), given)
        for source, cls in self.classes_of(owner):
            binding = most_telling(bindings.of_attribute(cls, name))
            if binding is not None:
                live = self._live_frame(source, binding.method)
                return self._binding_step(binding, source, live, "attribute")
        return None

    # Calls ---------------------------------------------------------------------------------

    def _of_call(self, site: Site, node: ast.Call, stray_device: str | None, part: int | None) -> Step | None:
        scope = self.scope(site)
        function = self.enter(self.called(node.func, scope), node, site)
        if function is not None:
            return self._returned(*function, part)
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr="pop" | "popleft" | "get" | "get_nowait"):
                function_around = site.source.function(node)
                filled = fillings(function_around, name) if function_around is not None else []
                if filled:
                    return self._binding_step(filled[-1], site.source, site.frame)
                return self._filled(name)
        if isinstance(node.func, ast.Attribute) and not call_name(node, scope):
            moves = node.func.attr in ("to", "cuda", "cpu", "to_empty")
            if moves and is_conversion(node, scope):
                return self._step(Site(site.source, node.func.value, site.frame), stray_device)
            if moves:
                return self._of_model_device(site, node, stray_device)
            receiver = device(node.func.value, scope)
            unnamed = isinstance(node.func.value, ast.Call) or (
                site.frame is None and isinstance(node.func.value, (ast.BinOp, ast.Name))
            )
            if receiver is None and unnamed:
                return self._step(Site(site.source, node.func.value, None), stray_device)
            if (
                receiver is not None
                and receiver == stray_device
                and not placement.is_module(value(node.func.value, scope))
            ):
                return self._step(Site(site.source, node.func.value, site.frame), stray_device)
            return None
        match node:
            case ast.Call(func=ast.Name(id="zip"), args=args) if (
                part is not None and part < len(args) and not isinstance(args[part], ast.Starred)
            ):
                return self._step(Site(site.source, args[part], site.frame), stray_device)
            case ast.Call(func=ast.Name(id="enumerate" | "zip" | "tqdm"), args=[inner, *_]):
                inner = inner.value if isinstance(inner, ast.Starred) else inner
                return self._step(Site(site.source, inner, site.frame), stray_device, part)
        if not is_passive(node, scope) or builds_module(node, scope):
            return None
        if call_name(node, scope) in FACTORIES:
            return self._of_model_device(site, node, stray_device)
        side = self._guilty_side(site, tuple(node.args), stray_device)
        if side is None:
            return None
        return self._step(Site(site.source, side, site.frame), stray_device)

    def _of_model_device(self, site: Site, node: ast.Call, stray_device: str | None) -> Step | None:
        """``torch.zeros(n, device=index.device)``: it is where `index` is, so `index` tells where that comes from."""
        given = keyword(node, "device") or (
            node.args[0] if node.args and isinstance(node.func, ast.Attribute) else None
        )
        match given:
            case ast.Attribute(value=ast.Name() as model, attr="device"):
                live = value(model, self.scope(site))
                if live is MISSING or (placement.is_tensor(live) and placement.device_of(live) == stray_device):
                    return self._step(Site(site.source, model, site.frame), stray_device)
        return None

    def _returned(self, source: Source, function: FunctionNode, part: int | None) -> Step | None:
        """What a finished call gave back; of a tuple that is unpacked afterwards the one element."""
        returned = [expr for expr in bindings.returns(function) if not isinstance(expr, ast.Constant)]
        if not returned:
            return None
        given = returned[-1]
        site = Site(source, self._return_node(source, given), None)
        if part is not None and isinstance(given, ast.Tuple) and part < len(given.elts):
            return Step("return", site, given.elts[part])
        return Step("return", site, given, part)

    @staticmethod
    def _return_node(source: Source, expr: ast.expr) -> ast.AST:
        return source.statement(expr) or expr


def _key(node: ast.AST) -> str | None:
    """The text of a key: ``'adv'`` of ``rollout["adv"]``."""
    match node:
        case ast.Subscript(value=ast.Name() | ast.Attribute(), slice=ast.Constant(value=str()) as key):
            return ast.unparse(key)
    return None


def _carry(step: Step, part: int) -> None:
    """``pair = f(); a, b = pair``: one step further out it is still the first of two."""
    if isinstance(step.value, ast.Tuple) and part < len(step.value.elts):
        step.value = step.value.elts[part]
    else:
        step.part = part

"""Where things are by how the code makes and moves them, where nothing lives to be asked."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from ipydevice.cells import CellHistory
from ipydevice.diagnose import bindings
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.frames import Sources
from ipydevice.diagnose.infer import FACTORIES, LIKES, VIEWS, keyword, with_index
from ipydevice.diagnose.modules_read import Modules
from ipydevice.diagnose.printed import PrintedSite
from ipydevice.diagnose.source import Source
from ipydevice.diagnose.static_tracer import TORCH, StaticTracer, root
from ipydevice.language import say
from ipydevice.messages import Mismatch

HOST: Final = "cpu"
DEEPEST: Final = 12  # steps from a name to what made it

_DEVICE_NAME = re.compile(r"(^|_)(dev|device|gpu|cuda|rank|local_rank)(_|\d|$)", re.I)
_LOADER = re.compile(r"loader|dataset|batches|(^|_)dl(_|$)|(^|_)ds(_|$)", re.I)
_PASSES_ON = frozenset("enumerate tqdm trange zip iter next islice cycle list tuple reversed prefetch".split())
_NO_TENSOR = frozenset("item tolist size dim numel stride shape ndim len int float str print range".split())
# Which argument of a call the checks' own names mean; the rest belongs to the module that is called.
_GIVEN: Final = frozenset("mat1 input index indices x query batch1 vec tensor".split())
_HELD: Final = frozenset("mat2 weight bias running_mean running_var weight_ih weight_hh self batch2 parameter".split())


class Reading:
    """The sources of one error, read for devices."""

    def __init__(
        self, sites: Sequence[PrintedSite], mismatch: Mismatch, history: CellHistory, sources: Sources | None = None
    ) -> None:
        self.mismatch, self.history = mismatch, history
        self.accelerator = next((name for name in mismatch.devices if name not in (HOST, "meta")), None)
        self.devices = mismatch.devices
        self.sources = sources or Sources(history)  # parsed already, where many places are read
        for site in sites:
            if site.source.cell is not None:
                self.sources._cells[site.source.cell] = site.source
        texts = {id(source): source for source in (*self.sources.all_cells(), *(site.source for site in sites))}
        self.texts = list(texts.values())
        self.libraries = {"torch", "np", "numpy", "F", "nn", "plt"} | _imported(self.texts)
        self.namespace = self._names()
        if self.accelerator is None and mismatch.kind == "placement":  # the message names the host alone
            named = [device for device in self.namespace.values() if type(device) is str and device != HOST]
            self.accelerator = named[0] if named else None
            self.devices = (*mismatch.devices, *named[:1])
        self.tracer = StaticTracer(self.sources, sites, self.namespace)
        self.modules = Modules(self)

    def _names(self) -> dict[str, Any]:
        """The names that the cells bind; of those that denote a device the device, of the others nothing."""
        found: dict[str, Any] = {}
        for source in self.texts:
            for node in bindings.own_nodes(source.tree):
                for name in _bound(node):
                    found.setdefault(name, MISSING)
                if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                    device = self._denoted(node.value)
                    if device is not None:
                        found[node.targets[0].id] = device
        return found

    # Devices -------------------------------------------------------------------------------

    def at(self, site: Site) -> str | None:
        """Where the value of the expression at `site` is; None where the code does not tell."""
        return self.device(site.node, site)

    def device(self, node: ast.AST | None, site: Site, depth: int = 0) -> str | None:
        """Where the value of `node` is; None where the code does not tell."""
        if depth > DEEPEST or node is None:
            return None
        here = Site(site.source, node, site.frame)
        match node:
            case ast.Call():
                return self._call(node, here, depth + 1)
            case ast.BinOp():
                return self._one(here, depth, node.left, node.right)
            case ast.UnaryOp():
                return self.device(node.operand, here, depth + 1)
            case ast.Compare():
                return self._one(here, depth, node.left, *node.comparators)
            case ast.IfExp():
                return self._one(here, depth, node.body, node.orelse)
            case ast.Tuple() | ast.List():
                return self._one(here, depth, *node.elts)
            case ast.Dict():
                return self._one(here, depth, *node.values)
            case ast.DictComp():
                return self.device(node.value, here, depth + 1)
            case ast.ListComp() | ast.GeneratorExp():
                return self.device(node.elt, here, depth + 1)
            case ast.Subscript():
                found = self._traced(here, depth)
                return found or self.device(node.value, here, depth + 1)
            case ast.Attribute(attr=name) if name in VIEWS:
                return self.device(node.value, here, depth + 1)
            case ast.Name() | ast.Attribute():
                return self._traced(here, depth)
        return None

    def _one(self, site: Site, depth: int, *parts: ast.expr) -> str | None:
        found = {self.device(part, site, depth + 1) for part in parts} - {None}
        return found.pop() if len(found) == 1 else None

    def _traced(self, site: Site, depth: int) -> str | None:
        """By the statement that gave a name or attribute its value."""
        node = site.node
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.libraries:
            return None
        step = self.tracer.one_step(site)
        if step is None or step.site.node is node:
            return None
        if step.how == "attribute" and isinstance(node, ast.Attribute) and self.modules.is_registered(step):
            return self.modules.of_instances(step.site)
        if step.value is None:
            return None
        if step.how in ("loop", "with") and self._is_loader(step.value):
            return HOST
        if self.modules.makes(step.value):
            return self.modules.device(site)
        return HOST if self._is_made_in_init(step) else self.device(step.value, step.site, depth + 1)

    def _is_made_in_init(self, step: Step) -> bool:
        """A plain attribute that a module's __init__ computes with torch: before anybody could move the module."""
        function = step.site.source.function(step.site.node)
        cls = step.site.source.class_of(step.site.node)
        if step.how != "attribute" or getattr(function, "name", "") != "__init__" or cls is None or step.value is None:
            return False
        text = ast.unparse(step.value)
        calls = any(
            isinstance(node, ast.Call) and (self.is_torch(node.func) or ast.unparse(node.func).startswith("self."))
            for node in ast.walk(step.value)
        )
        return cls.name in self.modules.classes and calls and not re.search(r"\.to\(|\.cuda\(|device", text)

    def _call(self, node: ast.Call, site: Site, depth: int) -> str | None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        moved = self._moved(node, site, depth)
        if moved is not None:
            return moved or None
        explicit = keyword(node, "device")
        if name in FACTORIES and self.is_torch(node.func):
            return self._denoted_at(explicit, site, depth) if explicit is not None else HOST
        if name in LIKES and explicit is not None:
            return self._denoted_at(explicit, site, depth)
        if name == "load" and self.is_torch(node.func):
            where = keyword(node, "map_location")
            return self._denoted_at(where, site, depth) if where is not None else None
        if keyword(node, "return_tensors") is not None:
            return HOST  # tokenizers and processors of transformers
        if name in _NO_TENSOR:
            return None
        if name in _PASSES_ON or self.is_torch(node.func):
            if name == "next" and node.args and self._is_loader(node.args[0]):
                return HOST
            return self._one(site, depth, *node.args)
        if self.modules.is_one(node.func, Site(site.source, node.func, site.frame)):
            return self.modules.device(Site(site.source, node.func, site.frame))
        if isinstance(node.func, ast.Attribute):
            return self.device(node.func.value, site, depth)
        returned = self._returned(node.func)
        return self.device(returned[0], returned[1], depth) if returned is not None else None

    def moved(self, node: ast.Call, site: Site) -> str | None:
        """Where a call such as ``model.to(device)`` moves to, by its arguments alone; "" where they do not tell."""
        return self._moved(node, site, DEEPEST + 1)

    def moves_result(self, site: Site) -> bool:
        """Whether what is made of the expression at `site` is moved in the same statement: ``table[i].to(device)``."""
        return any(
            isinstance(up, ast.Call) and isinstance(up.func, ast.Attribute) and up.func.attr in ("to", "cuda")
            for up in site.source.ancestors(site.node)
        )

    def _moved(self, node: ast.Call, site: Site, depth: int) -> str | None:
        """Where ``x.to(...)`` and its like move to; "" where they move to a place that is not told."""
        if not isinstance(node.func, ast.Attribute):
            return None
        match node.func.attr:
            case "cpu" | "numpy":
                return HOST
            case "cuda" | "xpu" | "npu" | "hpu" | "mps":
                return (
                    self._denoted(node.args[0])
                    if node.args and isinstance(node.args[0], ast.Constant)
                    else self.accelerator or with_index(node.func.attr)
                )
            case "to" | "to_empty":
                given = keyword(node, "device") or (node.args[0] if node.args else None)
                where = self._denoted_at(given, site, depth)
                return where if where is not None else self.device(node.func.value, site, depth) or ""
        return None

    def _denoted_at(self, node: ast.expr | None, site: Site, depth: int) -> str | None:
        if isinstance(node, ast.Attribute) and node.attr == "device":
            of = self.device(node.value, site, depth + 1)
            return of or (self.accelerator if self._names_device(node) else None)
        return self._denoted(node)

    def _denoted(self, node: ast.expr | None) -> str | None:
        """The device that an expression names; a variable called `device` stands for the accelerator of the message."""
        match node:
            case ast.Constant(value=str() as text):
                name = text.strip()
                if name == HOST or name == "meta":
                    return name
                kind = name.partition(":")[0]
                known = kind in ("cuda", "mps", "xpu", "npu", "hpu", "xla", "privateuseone")
                return with_index(name, self.mismatch.devices) if known else None
            case ast.Constant(value=int() as index) if type(index) is int:
                kind = (self.accelerator or "cuda").partition(":")[0]
                return f"{kind}:{index}"
            case ast.Call(func=func, args=[first, *_]) if ast.unparse(func) in ("torch.device", "device"):
                return self._denoted(first)
            case ast.IfExp(body=body, orelse=orelse):  # "cuda" if torch.cuda.is_available() else "cpu"
                named = [name for name in (self._denoted(body), self._denoted(orelse)) if name]
                return next((name for name in named if name in self.mismatch.devices and name != HOST), None) or (
                    named[0] if named else None
                )
            case ast.Name(id=name):
                held = self.__dict__.get("namespace", {}).get(name, MISSING)
                if type(held) is str:
                    return held
                return self.accelerator if self._names_device(node) else None
            case ast.Attribute() if self._names_device(node):
                return self.accelerator
        return None

    @staticmethod
    def _names_device(node: ast.expr) -> bool:
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        return bool(_DEVICE_NAME.search(name))

    def _is_loader(self, node: ast.expr) -> bool:
        """Whether a loop over it gets batches as a DataLoader makes them: by what made it, else by its name."""
        for part in ast.walk(node):
            name = part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "")
            made = self._makers.get(name) if isinstance(part, ast.Name) else None
            if name == "DataLoader" or made == "DataLoader":
                return True
            if made is not None and made in self._own:
                return False  # of the user's: it may move what it hands out
        return any(
            _LOADER.search(getattr(part, "id", "") or getattr(part, "attr", ""))
            for part in ast.walk(node)
            if isinstance(part, (ast.Name, ast.Attribute))
        )

    @cached_property
    def _makers(self) -> dict[str, str]:
        """By name the last name of what is called to make it: ``train = DataLoader(...)``."""
        found: dict[str, str] = {}
        for node in (node for source in self.texts for node in source.nodes):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func)):
                    found[name] = ast.unparse(func).rpartition(".")[2]
        return found

    @cached_property
    def _own(self) -> set[str]:
        """Names of the functions and classes of the texts."""
        defined = (ast.FunctionDef, ast.ClassDef)
        return {n.name for source in self.texts for n in source.nodes if isinstance(n, defined)}

    def is_library(self, node: ast.expr) -> bool:
        """A module of Python's, or something in one: ``F``, ``nn.functional.relu``."""
        found = root(node)
        return isinstance(found, ast.Name) and found.id in self.libraries

    @staticmethod
    def is_torch(func: ast.expr) -> bool:
        found = root(func)
        return isinstance(found, ast.Name) and found.id in TORCH and isinstance(func, ast.Attribute)

    def _returned(self, func: ast.expr) -> tuple[ast.expr, Site] | None:
        if not isinstance(func, ast.Name):
            return None
        for source in reversed(self.texts):
            for node in source.nodes:
                if isinstance(node, ast.FunctionDef) and node.name == func.id:
                    returned = bindings.returns(node)
                    return (returned[-1], Site(source, returned[-1])) if returned else None
        return None

    def is_whole(self, source: Source) -> bool:
        """Whether a text is all of its cell or file, so that a move of what it makes would be seen."""
        return not any(site.source is source and not site.whole for site in self.tracer.sites)

    # Words ---------------------------------------------------------------------------------

    def told(self, role: str, node: ast.AST, *, is_module: bool) -> str | None:
        """The device that the message states for the operand of that role."""
        roles = self.mismatch.roles
        if role in roles:
            return roles[role]
        if is_module:
            wanted = {"callee": _HELD, "0": _GIVEN, "1": frozenset({"hidden", "hx"})}.get(role, frozenset[str]())
            return next((roles[name] for name in roles if name in wanted), None)
        if isinstance(node, ast.BinOp):
            left = ("self", "mat1", "input")
            names = left if role == "left" else ("other", "mat2", "vec", "vec2", "batch2", "tensor")
            return next((roles[name] for name in names if name in roles), None)
        if isinstance(node, ast.Call):
            # Without an order of checks the roles are those of the call's own arguments, self first.
            order = self.mismatch.arguments or tuple(sorted(roles, key=lambda name: name != "self"))
            method = isinstance(node.func, ast.Attribute) and not self.is_library(node.func)
            if isinstance(node.func, ast.Attribute) and method and not self._is_method_of_op(node.func):
                return None  # of an object that is no tensor: what it hands on, and as what, is not shown
            position = int(role) + method if role.isdigit() else 0 if role == "receiver" else -1
            return roles.get(order[position]) if 0 <= position < len(order) and len(order) > 1 else None
        return roles.get({"target": "self", "value": "self", "index": "indices"}.get(role, role))

    def _is_method_of_op(self, func: ast.Attribute) -> bool:
        op = (self.mismatch.op or "").strip("_")
        return not op or func.attr.strip("_") in op or op in func.attr

    def cause(self, site: Site, kind: str, member: str) -> str | None:
        """Causes that the way the thing is made and kept tells alone."""
        if kind in ("generator", "optimizer"):
            return "generator_device" if kind == "generator" else "optimizer_state"
        if kind == "module":
            if self.modules.in_plain_container(site):
                return "module_in_plain_container"
            attribute = site.node.attr if isinstance(site.node, ast.Attribute) else ""
            if attribute and self.modules.replaced_later(attribute) is not None:
                return "module_added_after_move"
            if self.modules.handed_over(site) is not None:
                return "framework_moved_model"
            return "loss_weight" if member else "model_not_moved"
        node = site.node
        step = self.tracer.one_step(site) if isinstance(node, ast.Attribute) else None
        if step is not None and step.how == "attribute" and not self.modules.is_registered(step):
            cls = step.site.source.class_of(step.site.node)
            if cls is not None and cls.name in self.modules.classes:
                computed = step.value is not None and "self." in ast.unparse(step.value)
                return "derived_tensor_in_init" if computed else "plain_tensor_attribute"
        return None

    def chain(self, site: Site, device: str, kind: str) -> list[Step]:
        """The steps from the stray to where it is made; of a module where that is, not what it is made of."""
        made = (self.modules.handed_over(site) or self.modules.origin(site)) if kind == "module" else None
        if made is not None:
            return [made]
        steps = self.tracer.trace(site, device)
        library = next((at for at, step in enumerate(steps) if step.how == "import"), len(steps))
        return steps[:library]

    def evidence(self, stray: Site, other: Site | None) -> list[str]:
        """What in the code says where the two are."""
        facts = []
        for site in (stray, other):
            if site is None or not isinstance(site.node, ast.expr):
                continue
            kind = "module" if self.modules.is_one(site.node, site) else "tensor"
            steps = self.chain(site, "", kind)
            line = getattr(steps[-1].site.node, "lineno", None) if steps else None
            if line is not None:
                facts.append(
                    say(
                        "{name} comes from `{line}`",
                        name=site.source.segment(site.node),
                        line=steps[-1].site.source.line_text(line),
                    )
                )
        return facts


def _imported(texts: Sequence[Source]) -> set[str]:
    return {
        alias.asname or alias.name.partition(".")[0]
        for source in texts
        for node in source.nodes
        if isinstance(node, ast.Import)
        for alias in node.names
    }


def _bound(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(ctx=ast.Store()):
            return [node.id]
        case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
            return [node.name]
        case ast.Import() | ast.ImportFrom():
            return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    return []

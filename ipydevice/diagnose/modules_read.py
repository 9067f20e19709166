"""Modules as the texts show them: what makes one, what is done with it, and whether it was moved."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ipydevice.diagnose import bindings
from ipydevice.diagnose.bindings import Binding
from ipydevice.diagnose.finding import Site, Step
from ipydevice.diagnose.infer import keyword
from ipydevice.diagnose.source import Source

if TYPE_CHECKING:
    from ipydevice.diagnose.reading import Reading

HOST = "cpu"
_NN_CLASS = re.compile(r"(torch\.)?nn\.[A-Z]")
_MOVES = frozenset("to cuda cpu xpu to_empty".split())
_CHAINED = _MOVES | frozenset("eval train half float bfloat16 double requires_grad_".split())
# Losses, activations and layers without parameters: they are wherever their input is.
_WEIGHTLESS = re.compile(
    r"Loss\d?d?$|^(Re|Leaky|G|Si|P)?LU\d?$|ReLU|Softmax|Sigmoid|Tanh|Dropout|Pool|Flatten|Identity|Upsample|Pad"
)
# Methods and classes of libraries that train a model, and leave it where they like.
_TRAINS = re.compile(r"Trainer\b|\.(?:fit|train|validate|test|predict)$|\bprepare$")
_PLAIN = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Tuple)


class Modules:
    """The modules of one error's texts."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    @cached_property
    def classes(self) -> set[str]:
        """Names of the classes in the texts that are modules, by their bases."""
        classes = [n for source in self.reading.texts for n in source.nodes if isinstance(n, ast.ClassDef)]
        found: set[str] = set()
        for _ in range(4):  # a base may stand below
            for cls in classes:
                bases = [ast.unparse(base) for base in cls.bases]
                if any(_NN_CLASS.match(base) or base.endswith("Module") or base in found for base in bases):
                    found.add(cls.name)
        return found

    def makes(self, node: ast.expr | None) -> bool:
        """Whether the expression makes a module: a class of nn's, of the texts' own, or a copy of one."""
        made = innermost(node)
        if not isinstance(made, ast.Call):
            return False
        text = ast.unparse(made.func)
        last = text.rpartition(".")[2]
        return bool(_NN_CLASS.match(text)) or last in self.classes or last == "from_pretrained"

    def origin(self, site: Site) -> Step | None:
        """The step on the way back from a name at which a module is made; None where it is something else."""
        here: Site | None = site
        for _ in range(8):
            step = self.reading.tracer.one_step(here) if here is not None else None
            if step is None:
                return None
            if self.makes(step.value) or (step.how == "loop" and self._container(step) is not None):
                return step
            here = Site(step.site.source, step.value) if isinstance(step.value, (ast.Name, ast.Attribute)) else None
        return None

    def is_one(self, node: ast.expr, site: Site) -> bool:
        """Whether the name or attribute is bound to a module."""
        return isinstance(node, (ast.Name, ast.Attribute)) and self.origin(site) is not None

    def holds_tensors(self, site: Site) -> bool:
        """False for modules without parameters: activations, and losses without weights."""
        step = self.origin(site)
        made = innermost(step.value) if step is not None else None
        if not isinstance(made, ast.Call):
            return True
        name = ast.unparse(made.func).rpartition(".")[2]
        return name in self.classes or not _WEIGHTLESS.search(name) or _weight_of(made) is not None

    def held_tensor(self, site: Site) -> str:
        """``.weight``, where a loss holds a tensor that was given to it."""
        step = self.origin(site)
        name = _weight_keyword(innermost(step.value)) if step is not None else None
        return f".{name}" if name else ""

    # Devices -------------------------------------------------------------------------------

    def device(self, site: Site) -> str | None:
        """Where the texts move a module to; the host where they show how it is made and never move it."""
        step = self.origin(site)
        if step is None or not isinstance(site.node, ast.expr):
            return None
        if step.how == "loop":
            return HOST if self.of_instances(step.site) != HOST or self._container(step) is not None else None
        inside = step.site.source.class_of(step.site.node)
        if inside is not None and isinstance(site.node, ast.Attribute) and inside.name in self.classes:
            return self.of_instances(step.site)
        for node in _around(step):
            if isinstance(node, ast.Call) and (where := self.reading.moved(node, step.site)):
                return where
        moves = self.moves_of(_names(site.node, step), step)
        if moves:
            source, call = moves[-1]
            return self.reading.moved(call, Site(source, call)) or None
        weight = _weight_of(step.value)
        if weight is not None:
            return self.reading.device(weight, step.site, 4)
        return HOST if self.reading.is_whole(step.site.source) else None

    def of_instances(self, site: Site) -> str | None:
        """The device of the instances of the class around; the accelerator where the texts make none."""
        cls = site.source.class_of(site.node)
        if cls is None:
            return None
        for source in reversed(self.reading.texts):
            for call in reversed(bindings.calls(source.tree, cls.name)):
                for up in (call, *source.ancestors(call)):
                    if isinstance(up, ast.Call) and (where := self.reading.moved(up, Site(source, up))):
                        return where
                    if isinstance(up, ast.Assign):
                        outer = source.class_of(up)
                        if outer is not None and outer is not cls and outer.name in self.classes:
                            return self.of_instances(Site(source, up))
                        step = Step("assignment", Site(source, up), up.value)
                        moves = self.moves_of([ast.unparse(target) for target in up.targets], step)
                        return self.reading.moved(moves[-1][1], Site(*moves[-1])) or None if moves else HOST
        return self.reading.accelerator

    def moves_of(self, names: list[str], made: Step) -> list[tuple[Source, ast.Call]]:
        """Calls such as ``model.to(...)`` of these names that stand below the step that made it, or in a function."""
        texts = self.reading.texts
        source = made.site.source
        at = texts.index(source) if source in texts else 0
        line = getattr(made.site.node, "lineno", 0)
        found = []
        for position, text in enumerate(texts):
            for node in ast.walk(text.tree):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                if node.func.attr not in _MOVES or ast.unparse(node.func.value) not in names:
                    continue
                later = position > at or (text is source and node.lineno >= line)
                if later or text.function(node) is not None:
                    found.append((text, node))
        return found

    def replaced_later(self, attribute: str) -> Step | None:
        """``model.fc = nn.Linear(...)`` outside of a class."""
        for source in reversed(self.reading.texts):
            for node in bindings.own_nodes(source.tree):
                if isinstance(node, ast.Assign) and self.makes(node.value):
                    for target in node.targets:
                        named = isinstance(target, ast.Attribute) and target.attr == attribute
                        if named and ast.unparse(target).partition(".")[0] != "self":
                            return Step("attribute", Site(source, node), node.value)
        return None

    def handed_over(self, site: Site) -> Step | None:
        """The latest call before its use that a module is given to and that may move it: a trainer's, or of the texts'.

        None where it is an attribute, moved afterwards, or given to nobody.
        """
        made = self.origin(site)
        if made is None or not isinstance(site.node, ast.Name):
            return None
        name, texts = site.node.id, self.reading.texts
        until = texts.index(site.source) if site.source in texts else len(texts)
        found: ast.Call | None = None
        where = site.source
        for number, text in enumerate(texts[: until + 1]):
            for call in ast.walk(text.tree):
                if not isinstance(call, ast.Call) or text.function(call) is not None:
                    continue
                if number == until and call.lineno >= getattr(site.node, "lineno", 0):
                    continue
                handed = any(isinstance(given, ast.Name) and given.id == name for given in _given(call))
                if handed and (_TRAINS.search(ast.unparse(call.func)) or self._moves_argument(call, name)):
                    found, where = call, text
        return Step("argument", Site(where, found), found) if found is not None else None

    def _moves_argument(self, call: ast.Call, name: str) -> bool:
        """Whether a function of the texts moves the argument of that name."""
        for source in self.reading.texts:
            for function in source.nodes:
                if not isinstance(function, ast.FunctionDef) or function.name != getattr(call.func, "id", ""):
                    continue
                for parameter in bindings.parameters(function):
                    given = bindings.argument_for(call, function, parameter, False)
                    if isinstance(given, ast.Name) and given.id == name:
                        return any(
                            isinstance(node, ast.Attribute)
                            and node.attr in _MOVES
                            and getattr(node.value, "id", "") == parameter
                            for node in ast.walk(function)
                        )
        return False

    # Plain containers ----------------------------------------------------------------------

    def in_plain_container(self, site: Site) -> bool:
        """Whether a loop hands the module out of a list or dict that is no ModuleList."""
        step = self.origin(site)
        return step is not None and step.how == "loop" and self._container(step) is not None

    def _container(self, step: Step) -> Binding | None:
        """The attribute that a loop runs over, where it is a plain container that modules are put into."""
        if step.value is None:
            return None
        for node in ast.walk(step.value):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                cls = step.site.source.class_of(step.site.node)
                found = bindings.of_attribute(cls, node.attr) if cls is not None else []
                for binding in found:
                    if any(self.makes(part) for part in _parts(binding)):
                        return binding
        return None

    def is_registered(self, step: Step) -> bool:
        """Whether ``self.x = ...`` makes a parameter, buffer or module, which follow the module they belong to."""
        if isinstance(step.site.node, ast.Expr):
            text = ast.unparse(step.site.node)
            return bool(re.search(r"register_buffer|register_parameter|add_module", text))
        called = step.value.func if isinstance(step.value, ast.Call) else None
        last = ast.unparse(called).rpartition(".")[2] if called is not None else ""
        return self.makes(step.value) or last in ("Parameter", "Buffer")


def innermost(node: ast.expr | None) -> ast.expr | None:
    """``Net()`` in ``Net().to(device).eval()`` and in ``copy.deepcopy(Net())``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHAINED:
        node = node.func.value
    return node


def _around(step: Step) -> Iterator[ast.AST]:
    """The expression that makes a module, and what is done to it, and to what it is built into, in one statement."""
    if step.value is None:
        return
    yield from ast.walk(step.value)
    for up in step.site.source.ancestors(step.value):
        if isinstance(up, ast.stmt):
            return
        yield up


def _given(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)


def _names(node: ast.expr, step: Step) -> list[str]:
    """What the module is called: at its use, at the root of an attribute, and where it is made."""
    root: ast.expr = node
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    made = step.site.source.statement(step.site.node)
    targets = made.targets if isinstance(made, ast.Assign) else []
    return list(dict.fromkeys([ast.unparse(node), ast.unparse(root), *(ast.unparse(t) for t in targets)]))


def _parts(binding: Binding) -> Iterator[ast.expr]:
    match binding.value:
        case ast.List() | ast.Tuple():
            yield from binding.value.elts
        case ast.Dict():
            yield from binding.value.values
        case ast.ListComp():
            yield binding.value.elt
        case ast.DictComp():
            yield binding.value.value
        case ast.expr() if binding.how == "item":
            yield binding.value


def _weight_keyword(made: ast.expr | None) -> str | None:
    if not isinstance(made, ast.Call) or not ast.unparse(made.func).endswith("Loss"):
        return None
    if keyword(made, "pos_weight") is not None:
        return "pos_weight"
    return "weight" if keyword(made, "weight") is not None or made.args else None


def _weight_of(made: ast.expr | None) -> ast.expr | None:
    """The tensor that a loss is given as its weight."""
    made = innermost(made)
    name = _weight_keyword(made)
    if name is None or not isinstance(made, ast.Call):
        return None
    return keyword(made, name) or (made.args[0] if made.args else None)

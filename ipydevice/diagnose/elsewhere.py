"""Errors raised in a replica or worker, whose traceback came as text: what its line reads of a live object's state.

``nn.DataParallel`` gives each replica copies of parameters and buffers. Anything else that a line reads of ``self`` is
shared by all of them, and a method that was bound before (as a hook, or kept in a dictionary) still has the first
card's module as its ``self`` (torch/nn/parallel/replicate.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import bindings, holders, locate
from ipydevice.diagnose.culprit import Choice
from ipydevice.diagnose.evaluate import MISSING, Scope, value
from ipydevice.diagnose.frames import Frame, is_library
from ipydevice.diagnose.meeting import Candidate
from ipydevice.diagnose.origin import Tracer
from ipydevice.diagnose.source import Source
from ipydevice.language import Sentence, say
from ipydevice.messages import Mismatch

_MOST_TEXTS = 24
_SHARED: Sentence = "{name} is a plain attribute: replicas share it, they get no copy of their own"
_BOUND: Sentence = (
    "{name} is read by a method that was bound before: in every replica its self is the first card's module"
)


def choose(frames: list[Frame], mismatch: Mismatch, tracer: Tracer) -> Choice | None:
    """The state that the innermost line of the user's reads and that does not follow the replica."""
    for text in reversed(mismatch.frames):
        source = tracer.sources.of_code_file(text.file) if not is_library(text.file) else None
        node = locate.running(source, text.line, None) if source is not None else None
        if source is None or node is None:
            continue
        cls = source.class_of(node)
        owner = _instance_in(frames, cls.name) if cls is not None else None
        if owner is None:
            return None
        frame = [frame for frame in frames if frame.is_user][-1]
        shared, bound = _read(node, source, owner, tracer)
        function = source.function(node)
        is_forward = getattr(function, "name", "") == "forward"
        for expr, kept, via in shared or ([] if is_forward else bound):
            tensor = next((found.value for found in placement.walk(kept, limit=1)), None)
            if tensor is None:
                continue
            stray = Candidate(
                frame, expr, "", placement.device_of(tensor), value=tensor, known=True, via=via, owner=owner,
                elsewhere=source,
            )  # fmt: skip
            step = tracer.of_attribute_of(owner, expr.attr)
            fact = say(_SHARED if via == "attribute" else _BOUND, name=ast.unparse(expr))
            return Choice(stray, None, [stray], [step] if step is not None else [], evidence=[fact], margin=1.0)
        return None
    return None


_Read = tuple[ast.Attribute, Any, str]  # ``self.bank``, what it is, how `self` holds it


def _read(node: ast.AST, source: Source, owner: Any, tracer: Tracer) -> tuple[list[_Read], list[_Read]]:
    """What the line reads of `self`: plain attributes that hold tensors, and what is registered."""
    scope = Scope({"self": owner}, tracer.namespace)
    shared: list[_Read] = []
    registered: list[_Read] = []
    for expr in (part for text in _texts(node, source) for part in ast.walk(text) if isinstance(part, ast.Attribute)):
        kept = value(expr, scope)
        if kept is MISSING or (isinstance(source.parent(expr), ast.Attribute) and placement.is_module(kept)):
            continue
        via = next((member.via for member in placement.members(owner) if member.value is kept), "")
        if via == "attribute" and not placement.is_module(kept):
            shared.append((expr, kept, via))
        elif via in ("parameter", "buffer", "module"):
            registered.append((expr, kept, via))
    return shared, registered


def _texts(node: ast.AST, source: Source) -> Iterator[ast.AST]:
    """A node with what its locals were made of, and what the methods of the same class return that it calls."""
    cls = source.class_of(node)
    methods = {item.name: item for item in cls.body if isinstance(item, ast.FunctionDef)} if cls is not None else {}
    waiting: list[ast.AST] = [node]
    for text in waiting:
        yield text
        if len(waiting) > _MOST_TEXTS:
            continue
        function = source.function(text)
        for part in ast.walk(text):
            found: list[ast.AST | None] = []
            match part:
                case ast.Name(id=name) if function is not None:
                    found = [binding.value for binding in bindings.of_name(function, name)]
                case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)) if name in methods:
                    found = list(bindings.returns(methods[name]))
            waiting += [text for text in found if text is not None and text not in waiting]


def _instance_in(frames: list[Frame], name: str) -> Any:
    """The live object of a class of this name in what the user's line works with."""
    frame = [frame for frame in frames if frame.is_user][-1]
    node = frame.node
    for expr in (part for part in ast.walk(node) if isinstance(part, ast.expr)) if node is not None else ():
        live = value(expr, frame.scope)
        waiting = [live] if live is not MISSING else []
        for _ in range(500):
            if not waiting:
                break
            here = waiting.pop(0)
            if placement.class_name(type(here)) == name:
                return here
            if (
                placement.is_module(here)
                or holders.is_container(here)
                or placement.kind_of(here) in ("loader", "dataset")
            ):
                waiting += [member.value for member in placement.members(here) if not placement.is_tensor(member.value)]
    return None

"""Copies between devices and waits for a device, by the line of the user's that makes them."""

from __future__ import annotations

import ast
import os
import weakref
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from ipydevice import placement
from ipydevice.devicecheck import callsite
from ipydevice.devicecheck.watched import HOST, PINNED, Facts, Watched
from ipydevice.diagnose import locate
from ipydevice.diagnose.frames import Sources
from ipydevice.diagnosis import Place
from ipydevice.language import Sentence, say
from ipydevice.report import DISPLAYED, Transfer

# What makes a text of a tensor; the source tells what asked for it.
_TEXT, _PRINTED = "repr()", "print()"
# IPython's own display, by the file through which it passes: of what a cell's expression gives, and ``display(x)``.
_DISPLAYS = {os.path.join("IPython", "core", "displayhook.py"): DISPLAYED,
             os.path.join("IPython", "core", "display_functions.py"): "display()"}  # fmt: skip
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(eq=False, slots=True)
class _Site:
    """One way on which one call of the user's is reached."""

    watched: Watched
    facts: tuple[str, str, str]  # kind, source, target
    chain: list[tuple[CodeType, int, int]]  # the user's frames, the innermost first: code, instruction, line
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    count: int = 0
    bytes: int = 0
    first: Any = None  # weak: the tensor of the first time
    same: bool = True  # it was that tensor each time
    non_blocking: bool = True
    pinned: bool = False  # the first one's memory
    module: bool = False  # Module.to(): many tensors in one call
    library: str = ""  # the file that made the call, where it isn't the user's
    displayed: str = ""  # how, where IPython has asked for the text


class TransferLog:
    """Counts while the code runs and reads the sources afterwards."""

    def __init__(self, base: callsite.Base | None = None) -> None:
        self._base = base
        self._sites: dict[Any, _Site] = {}
        self.total = 0

    def note(self, watched: Watched, facts: Facts, kwargs: dict[str, Any], caller: FrameType | None) -> bool:
        """One call of torch has moved something; tells whether a whole module is on its way."""
        frame = callsite.nearest(caller)
        if frame is None:
            return False
        self.total += 1
        key = frame.f_code, frame.f_lasti, watched.call, facts.source, facts.target
        site = self._sites.get(key)
        if site is None:
            frames = callsite.user_frames(frame, self._base)
            chain = [(f.f_code, f.f_lasti, f.f_lineno) for f in frames]
            site = self._sites[key] = _Site(watched, facts[:3], chain)
            if facts.tensor is not None:
                site.shape, site.dtype = placement.shape_of(facts.tensor), placement.dtype_of(facts.tensor)
                site.first = weakref.ref(facts.tensor)
                site.pinned = facts.source == "cpu" and bool(placement.call(facts.tensor, "is_pinned"))
            site.module = _inside_module_move(caller)
            writer = callsite.asking(caller)
            if writer is not None and writer is not frame:
                site.library = writer.f_code.co_filename.replace("\\", "/")
            if watched.call in (_TEXT, "format()"):
                site.displayed = _displayed(caller)
        elif site.first is None or site.first() is not facts.tensor:
            site.same = False
        site.count += 1
        site.bytes += facts.bytes
        site.non_blocking = site.non_blocking and bool(kwargs.get("non_blocking"))
        return site.module

    def absorb(self, other: TransferLog) -> None:
        """Take over what a check inside this one has counted."""
        self.total += other.total
        for key, site in other._sites.items():
            mine = self._sites.setdefault(key, site)
            if mine is not site:
                mine.count += site.count
                mine.bytes += site.bytes
                mine.same = False

    def transfers(self, sources: Sources) -> tuple[Transfer, ...]:
        """By line: first those in loops, then as they were met."""
        found = [_transfer(site, sources) for site in self._sites.values()]
        return tuple(sorted(found, key=lambda each: not each.loop))


def _transfer(site: _Site, sources: Sources) -> Transfer:
    code, lasti, line = site.chain[0]
    kind, origin, target = site.facts
    loop = site.count > 1 and any(_in_loop(*step, sources) for step in site.chain)
    call = site.displayed or _as_called(site, sources)
    return Transfer(
        place=callsite.place_of(code, line, sources),
        kind="copy" if kind == "copy" else "sync",
        call=call,
        expression=_written(code, lasti, line, sources),
        source=origin,
        target=target,
        count=site.count,
        bytes=site.bytes,
        shape=site.shape,
        dtype=site.dtype,
        explicit=site.watched.explicit and kind == "copy",
        loop=loop,
        inside=bool(site.library) and not site.module and not site.displayed,
        advice=_advice(site, call) if loop else "",
    )


def _displayed(caller: FrameType | None) -> str:
    """How IPython displays the tensor whose text is made; nothing where the code itself made the text."""
    for frame in callsite.outwards(caller):
        for file, call in _DISPLAYS.items():
            if frame.f_code.co_filename.endswith(file):
                return call
    return ""


def _as_called(site: _Site, sources: Sources) -> str:
    if site.watched.call != _TEXT:
        return site.watched.call
    _, node = _node(*site.chain[0], sources)
    printed = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    return _PRINTED if printed else _TEXT


def _node(code: CodeType, lasti: int, line: int, sources: Sources) -> tuple[Any, ast.AST | None]:
    source = sources.of_code_file(code.co_filename)
    if source is None:
        return None, None
    return source, locate.running(source, line, callsite.span_of(code, lasti))


def _written(code: CodeType, lasti: int, line: int, sources: Sources) -> str:
    """The call as written, short enough for a table."""
    source, node = _node(code, lasti, line, sources)
    if source is None:
        return ""
    if isinstance(node, (ast.If, ast.While)):
        return f"{type(node).__name__.lower()} {source.segment(node.test)}"
    if isinstance(node, ast.expr):
        text: str = source.segment(node)
        return text if len(text) <= 60 else text[:59] + "…"
    place: Place = callsite.place_of(code, line, sources)
    return place.source


def _in_loop(code: CodeType, lasti: int, line: int, sources: Sources) -> bool:
    """Whether this frame's own code repeats the call; a loop outside of its function is the caller's."""
    source, node = _node(code, lasti, line, sources)
    if source is None or node is None:
        return False
    inner = node
    for outer in source.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return False
        if isinstance(outer, _LOOPS) and not _once(outer, inner):
            return True
        inner = outer
    return isinstance(node, (ast.While, ast.For))


def _once(loop: ast.AST, part: ast.AST) -> bool:
    """What stands in the head of a ``for`` or below its ``else`` runs once."""
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        return part is loop.iter or part in loop.orelse
    return isinstance(loop, ast.While) and part in loop.orelse


def _inside_module_move(caller: FrameType | None) -> bool:
    """``model.to(device)``: torch walks over the parameters."""
    frame, depth = caller, 0
    while frame is not None and depth < 6 and not callsite.is_user_file(frame.f_code.co_filename):
        if frame.f_code.co_name == "_apply":
            return True
        frame, depth = frame.f_back, depth + 1
    return False


# What the user can do about a library's own copies and waits; nothing about most.
_LIBRARIES: dict[str, Sentence] = {
    "torch/distributions/": "the distribution checks its arguments: validate_args=False saves it",
    "torch/optim/": "the optimizer's step counters are on the device: load its state with map_location='cpu'",
    "torch/nn/utils/rnn": "enforce_sorted=True, or lengths sorted beforehand, save it",
}


_AS_NUMBER: Sentence = "its value is read on the host each time: keep it as a Python number"
_UNCHECKED = ("cholesky", "inv", "ldl_factor", "lu_factor", "solve")  # torch.linalg has an _ex of these


def _without_checks(call: str) -> str:
    name = call.removeprefix("linalg.").removesuffix("()")
    if call == "multinomial()":
        return say("its checks wait: (p / torch.empty_like(p).exponential_()).argmax(-1) draws one without")
    return say("{call} does the same without waiting", call=f"linalg.{name}_ex()") if name in _UNCHECKED else ""


def _advice(site: _Site, call: str) -> str:
    """What saves it, for something that a loop repeats."""
    kind, origin, target = site.facts
    if site.module:
        return say("move the module once, before the loop")
    if site.library and not site.displayed:
        return say(next((words for part, words in _LIBRARIES.items() if part in site.library), ""))
    if call == "indexing" or (call == "assignment" and kind == "sync"):
        if kind == "copy":
            return say("make the index on {target}", target=target)
        if site.shape == ():
            return say(_AS_NUMBER)
        return say("counting a mask makes the host wait: torch.where() keeps the work on the device")
    if call.endswith("synchronize()"):
        return say("everything else waits meanwhile: once, after the loop, will do; torch.cuda.Event times without it")
    if target == PINNED:
        return say("DataLoader(pin_memory=True) does it in a thread beside the loop")
    if kind == "copy" and site.count > 1 and site.same:
        return say("the same tensor each time: move it once, before the loop")
    if kind == "copy" and origin in HOST:
        if call in ("torch.tensor()", ".new_tensor()"):
            return say("build the tensor once before the loop, or from tensors that are on the device")
        if site.non_blocking:
            return ""
        if site.pinned:
            return say("its memory is pinned: .to(device, non_blocking=True) lets the copy run beside the work")
        return say("DataLoader(pin_memory=True) and .to(device, non_blocking=True) let the copy run beside the work")
    if kind == "copy" and target in HOST:
        return say("keep the results on the device and copy them once, after the loop")
    if kind == "copy":
        return say("from card to card each time: let both steps live on one card")
    if call in (".item()", "float()", "int()", ".tolist()", "format()"):
        return say("add up on the device (total += loss.detach()) and read it once, after the loop")
    if call in ("if tensor", "in tensor", "equal()", "allclose()", "is_nonzero()"):
        return say("the host waits to decide: test every n-th step, or use torch.where()")
    if site.displayed or call in (_PRINTED, _TEXT):
        return say("print every n-th step")
    if call in ("torch.arange()", "torch.linspace()", "torch.full()"):
        return say(_AS_NUMBER)
    if call.startswith("linalg.") or call == "multinomial()":
        return _without_checks(call)
    return say("its size depends on values, so the host waits: a mask or torch.where() keeps the work on the device")

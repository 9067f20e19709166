"""Modules are looked at when they are first called: what is stray in them is told before it runs wrong."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

import torch

from ipydevice import listing, placement
from ipydevice.devicecheck import callsite, nesting
from ipydevice.devicecheck.replacing import Replaced
from ipydevice.diagnose import locate
from ipydevice.diagnose.frames import Sources
from ipydevice.diagnosis import Fix, Row
from ipydevice.language import say
from ipydevice.listing import odd
from ipydevice.listing.methods import reads_unmoved
from ipydevice.placement.kinds import attributes

LOOKS = 500  # a look takes half a millisecond, and a loop may make a module in each round: nn.Softmax(1)(x)
_MOST = 100_000  # modules in one; registered twice they count twice


class CalledModules:
    """While it is open, a module that is called for the first time is looked at, the outermost for all inside it.

    Not by a hook for all modules: while there is one, a compiled module warns of it (torch/_dynamo/eval_frame.py).
    """

    def __init__(self, sources: Sources, namespace: dict[str, Any] | None) -> None:
        self.rows: dict[str, Row] = {}  # what is odd, by name
        self.modules: dict[str, Any] = {}  # those of the rows
        self.fixes: dict[str, Fix] = {}  # what mends it, by title
        self._sources = sources
        self._namespace = namespace
        self._seen: set[int] = set()
        self._left = LOOKS
        self._replaced = Replaced(torch.nn.Module, "__call__", self._call)

    def _call(self, replaced: Replaced) -> Any:
        seen = self._seen

        def call(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            if id(module) not in seen and replaced.is_open:
                self._look(module, sys._getframe(1))
            return replaced.before(module, *args, **kwargs)

        return call

    def close(self) -> None:
        """Stop looking."""
        self._replaced.close()
        self._namespace = None

    def forget(self) -> None:
        """A module has moved: what is stray in it may be so only now."""
        self._seen.clear()

    def _look(self, module: Any, caller: FrameType) -> None:
        if nesting.innermost() is None:  # another task's, or the code that a checked generator has yielded to
            return
        self._left -= 1
        if self._left == 0:
            self._replaced.close()
        with placement.quiet():
            self._seen.update(map(id, _with_all_inside(module)))
            try:
                name = placement.class_name(type(module))
                if _odd(name, module)[0]:  # finding out what the user calls it takes longer than the look itself
                    rows, fixes = _odd(self._name_of(module, caller), module)
                    for row in rows:
                        self.rows.setdefault(row.name, row)
                        self.modules.setdefault(row.name, module)
                    for fix in fixes:
                        self.fixes.setdefault(fix.title, fix)
            except Exception:  # whatever a module holds, the call that the user has made comes first
                if os.environ.get("IPYDEVICE_DEBUG") == "1":
                    raise

    def _name_of(self, module: Any, caller: FrameType) -> str:
        for name, value in list(dict.items(self._namespace or {})):
            if value is module and not name.startswith("_"):
                return name
        frame = callsite.nearest(caller)
        if frame is not None and frame is caller:  # written by the user, and not called by a module of torch's
            source = self._sources.of_code_file(frame.f_code.co_filename)
            if source is not None:
                node = locate.running(source, frame.f_lineno, callsite.span_of(frame.f_code, frame.f_lasti))
                if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
                    written: str = source.segment(node.func)
                    return written
        return placement.class_name(type(module))


def _with_all_inside(module: Any) -> list[Any]:
    found = [module]
    for each in found:
        held = attributes(each).get("_modules")
        if type(held) is dict:
            found += [inner for inner in held.values() if inner is not None]
        if len(found) > _MOST:
            break
    return found


def _odd(name: str, module: Any) -> tuple[tuple[Row, ...], tuple[Fix, ...]]:
    found = listing.select({name: module}, odd_only=True)
    return (*found.rows, *_of_parallel(name, module)), found.fixes


def _of_parallel(name: str, module: Any) -> Iterator[Row]:
    """The rules of ``nn.DataParallel`` and ``DistributedDataParallel`` that hold for the module inside.

    torch/nn/parallel/data_parallel.py, `forward`, refuses parameters elsewhere than on its first device, and its
    replicas take plain attributes as they are (replicate.py); distributed.py asks for one device at construction.
    """
    if issubclass(type(module), torch.nn.DataParallel):
        kind, home = "DataParallel", module.__dict__.get("src_device_obj")
    elif issubclass(type(module), torch.nn.parallel.DistributedDataParallel):
        kind, home = "DistributedDataParallel", module.__dict__.get("device")
    else:
        return
    cards = module.__dict__.get("device_ids")
    inner = module.__dict__["_modules"].get("module")
    if not cards or type(home) is not torch.device or inner is None:  # on the host, or a model split over cards
        return
    row = Row(name, "module", str(home))
    strays = [
        (path + member.path, placement.device_of(member.value))
        for path, part in odd.submodules(inner)
        for member in placement.members(part)
        if member.via in ("parameter", "buffer") and placement.device_of(member.value) != str(home)
    ]
    if strays:
        path, device = strays[0]
        names, remedy = f"module{path}", f"{name}.to({str(home)!r})"
        if len(strays) > 1:
            names = say("{names} and {count} more", names=names, count=len(strays) - 1)
        words = say(
            "{names} on {device}, but {kind} computes from {home}: {code}",
            names=names, device=device, kind=kind, home=home, code=remedy,
        )  # fmt: skip
        yield replace(row, device=device, odd=words, remedy=remedy)
    elif kind == "DataParallel" and len(cards) > 1:
        left = next(_not_replicated(inner), None)
        if left is not None:
            words = say(
                "{name} is no buffer: each replica takes it as it is, on {home}: register_buffer",
                name=f"module{left}",
                home=home,
            )
            yield replace(row, odd=words)


def _not_replicated(module: Any) -> Iterator[str]:
    for path, part in odd.submodules(module):
        for member in placement.members(part):
            plain = member.via == "attribute" and placement.is_tensor(member.value)
            if plain and reads_unmoved(part, member.path[1:]):
                yield path + member.path

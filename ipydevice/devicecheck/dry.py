"""A dry run: the names are put back afterwards, and what was changed in place is named."""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from ipydevice import placement
from ipydevice.devicecheck.mode import Numbers
from ipydevice.devicecheck.watched import Watched
from ipydevice.listing import odd
from ipydevice.placement.kinds import attributes, home_of

_MOST = 50_000  # tensors remembered, and items of one container
_DEEPEST = 3  # history["loss"]["train"]
_CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)  # importing and defining changes these

Held = list[Any] | dict[Any, Any]


class Snapshot:
    """A namespace as it was, and the random numbers that come next."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._names = dict(namespace)
        self._outputs = namespace.get("Out")
        self._tensors: list[tuple[str, Any, Any]] = []  # path, tensor, how it was
        self._holders: list[tuple[str, Any, Held]] = []  # path, container or object, what it held
        self._generators = [Numbers().restore, *_generators()]
        left, seen = _MOST, set[int]()
        for name, value in self._names.items():
            if name.startswith("_") or value is self._outputs or issubclass(type(value), _CODE):
                continue
            self._holders += _holders(name, value)
            for found in placement.walk(value, limit=left):
                left -= 1
                if id(found.value) in seen:  # a parameter stands in its module and in the optimizer
                    continue
                seen.add(id(found.value))
                self._tensors.append((name + found.path, found.value, _State.of(found.value)))
        self._parts: list[tuple[Any, Any, int]] = []  # tensor, its `.data`, the changes of that when it was read

    def watched(self) -> dict[Any, Watched]:
        """What to look at meanwhile: writing into ``x.data`` counts as no change of ``x``."""

        def note(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            if len(self._parts) < _MOST:
                self._parts.append((args[0], result, _version(result)))

        return {torch.Tensor.data.__get__: Watched(".data", note)}  # type: ignore[attr-defined]

    def restore(self) -> tuple[str, ...]:
        """Put the names back; tells what is not as it was all the same."""
        for name in [name for name in self._namespace if name not in self._names]:
            if name.startswith("_") and name[1:].isdecimal() and type(self._outputs) is dict:
                self._outputs.pop(int(name[1:]), None)  # what the cell ended with is `_7` and `Out[7]`
            del self._namespace[name]
        self._namespace.update(self._names)
        for restore in self._generators:
            restore()
        written = {id(tensor) for tensor, data, version in self._parts if _version(data) != version}
        changed: list[str] = []
        for path, tensor, before in self._tensors:
            now = _State.of(tensor)
            if now[:3] != before[:3] or id(tensor) in written:
                changed.append(path)
            if now.grad is not before.grad or now.grad_version != before.grad_version:
                changed.append(f"{path}.grad")
        for path, holder, held in self._holders:
            changed += _changes(path, held, _held(holder))
        return tuple(dict.fromkeys(changed))


def _generators() -> Iterator[Callable[[], None]]:
    """What puts the random numbers of Python and numpy back."""
    state = random.getstate()
    yield lambda: random.setstate(state)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        legacy = numpy.get_state()
        yield lambda: numpy.set_state(legacy)


def _holders(path: str, value: Any, depth: int = _DEEPEST) -> Iterator[tuple[str, Any, Held]]:
    """Containers and objects whose items or attributes can be exchanged; the path of an object ends with a dot."""
    if type(value) in (list, dict, set):
        if len(value) > _MOST:
            return
        yield path, value, _held(value)
        if depth and type(value) is not set:
            for key, item in list(value.items()) if type(value) is dict else enumerate(value):
                if type(item) in (list, dict, set):
                    yield from _holders(f"{path}[{key!r}]" if type(key) in (int, str) else path, item, depth - 1)
    elif placement.is_module(value):
        for inner, part in odd.submodules(value):
            yield f"{path}{inner}.", attributes(part), _held(attributes(part))
    elif issubclass(type(value), torch.optim.Optimizer):
        state = attributes(value).get("state")
        if isinstance(state, dict):
            yield f"{path}.state", state, _held(state)
    elif home_of(value) != "torch" and attributes(value):
        yield f"{path}.", attributes(value), _held(attributes(value))


def _held(holder: Any) -> Held:
    return dict(holder) if type(holder) is dict else list(holder)


def _changes(path: str, before: Held, after: Held) -> Iterator[str]:
    """Where two things that were held differ; by identity, so that nobody's ``__eq__`` is called."""
    if isinstance(before, list) or isinstance(after, list):
        if len(before) != len(after) or any(one is not other for one, other in zip(before, after, strict=True)):
            yield path
        return
    for key in {**before, **after}:
        if before.get(key, _MISSING) is not after.get(key, _MISSING):
            yield f"{path}{key}" if path.endswith(".") else f"{path}[{key!r}]" if type(key) in (str, int) else path


_MISSING = object()


class _State(NamedTuple):
    """How a tensor is: ``model.to()`` puts other data into the same parameter, ``backward`` makes a gradient."""

    version: int
    device: str
    storage: Any
    grad: Any
    grad_version: int

    @classmethod
    def of(cls, tensor: Any) -> _State:
        grad = placement.grad_of(tensor)
        where, memory = placement.device_of(tensor), placement.storage_of(tensor)
        return cls(_version(tensor), where, memory, grad, 0 if grad is None else _version(grad))


def _version(tensor: Any) -> int:
    counted = placement.read(tensor, "_version")
    return -1 if counted is None else int(counted)  # inference tensors do not count

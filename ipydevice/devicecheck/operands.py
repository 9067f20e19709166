"""The tensors that take part in one call, and the same call with some of them moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from ipydevice import placement

_DEEPEST = 4  # lists in lists: nn.LSTM passes (input, (h, c), [weights], ...)

Target = Callable[[torch.Tensor], str | None]  # where a tensor has to go; None: it stays


def tensors_of(value: Any, depth: int = _DEEPEST) -> Iterator[torch.Tensor]:
    """Every tensor in the arguments of a call."""
    if placement.is_tensor(value):
        yield value
    elif depth and type(value) in (tuple, list):
        for part in value:
            yield from tensors_of(part, depth - 1)
    elif depth and type(value) is dict:
        for part in value.values():
            yield from tensors_of(part, depth - 1)
    elif depth and isinstance(value, tuple):  # torch.return_types, named tuples
        for part in tuple.__iter__(value):
            yield from tensors_of(part, depth - 1)


def written_by(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """What the call writes to: moving it would lose the result."""
    name = getattr(func, "__name__", "")
    if kwargs.get("out") is not None:
        return list(tensors_of(kwargs["out"]))
    in_place = name.endswith("_") and not name.endswith("__")
    assigns = name in ("__setitem__", "__set__")  # x[i] = y, x.grad = y
    if in_place or assigns or (name.startswith("__i") and name not in _READING) or kwargs.get("inplace"):
        return list(tensors_of(args[0])) if args else []
    return []


_READING = ("__int__", "__index__", "__invert__", "__init__")


@dataclass
class Moved:
    """A call's arguments with copies in them, and what they are copies of."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    copies: list[tuple[torch.Tensor, torch.Tensor, int]] = field(default_factory=list)

    def write_back(self, func: Any) -> None:
        """Carry what the call has written into a copy over to the original: running statistics of a norm."""
        silently = _statistics(func, self.args, self.kwargs)
        for original, copy, version in self.copies:
            if _version(copy) != version or any(copy is each for each in silently):
                with torch.no_grad():
                    original.copy_(copy)


def move(args: tuple[Any, ...], kwargs: dict[str, Any], target: Target) -> Moved:
    """The arguments with every tensor where `target` wants it. Gradients flow through the copies."""
    moved = Moved(args, kwargs)
    done: dict[int, torch.Tensor] = {}

    def place(value: Any, depth: int) -> Any:
        if placement.is_tensor(value):
            where = target(value)
            if where is None or where == placement.device_of(value):
                return value
            if id(value) not in done:
                copy = value.to(where)
                done[id(value)] = copy
                moved.copies.append((value, copy, _version(copy)))
            return done[id(value)]
        if depth and type(value) in (tuple, list):
            return type(value)(place(part, depth - 1) for part in value)
        if depth and type(value) is dict:
            return {name: place(part, depth - 1) for name, part in value.items()}
        return value

    moved.args = tuple(place(value, _DEEPEST) for value in args)
    moved.kwargs = {name: value if name == "out" else place(value, _DEEPEST) for name, value in kwargs.items()}
    return moved


def by_position(args: tuple[Any, ...]) -> Target:
    """For foreach calls: each position of the lists goes to where the first list has it."""
    lists = [value for value in args if type(value) in (list, tuple)]
    wanted: dict[int, str] = {}
    for row in zip(*lists, strict=False):
        if placement.is_tensor(row[0]):
            where = placement.device_of(row[0])
            wanted.update({id(tensor): where for tensor in row[1:] if placement.is_tensor(tensor)})
    return lambda tensor: wanted.get(id(tensor))


def _statistics(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Running statistics, which the kernels of norms write without counting it as a change."""
    if getattr(func, "__name__", "") not in ("batch_norm", "instance_norm"):
        return []
    return [*args[1:3], kwargs.get("running_mean"), kwargs.get("running_var")]


def _version(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # inference tensors do not count
        return -1

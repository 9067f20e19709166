"""Moving data of any nesting."""

from __future__ import annotations

import copy
import dataclasses
import enum
import types
from collections import UserDict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ipydevice import placement
from ipydevice.toolbox import accelerators


def to_device(data: Any, device: Any, *, non_blocking: bool = True, pin: bool = False, skip: Any = ()) -> Any:
    """`data` with every tensor in it on `device`: a tensor, or any nesting of containers, dataclasses and objects.

    Types stay what they are (named tuples, `OrderedDict`, dataclasses, tensor subclasses, packed sequences), one
    tensor under two names stays one tensor, and what is already there is returned itself, not copied. Objects with
    a ``to`` method of their own, modules too, are asked to move themselves. Gradients flow through the move, as
    through ``Tensor.to``.

    Args:
        device: a name, a `torch.device` or the number of a card.
        non_blocking: let copies from pinned memory run beside the work. Copies to the host always wait: read
            earlier, their numbers would be wrong.
        pin: put host tensors into pinned memory before they go to an accelerator.
        skip: a class or tuple of classes to leave where they are, such as ``numpy.ndarray``.

    Raises:
        TypeError: something with a tensor in it cannot be moved. The text says which and what to do; nothing is
            skipped silently.
        ValueError: PyTorch knows no such device; or a container contains itself.
    """
    return _Move(accelerators.named(device), non_blocking, pin, skip).move(data, "data")


class _Move:
    """One call: what has been moved already, by identity."""

    def __init__(self, device: torch.device, non_blocking: bool, pin: bool, skip: Any) -> None:
        self.device = device
        self.on_host = device.type in accelerators.HOSTS
        self.non_blocking = non_blocking and not self.on_host
        self.pin = pin and not self.on_host
        self.skip = skip
        self._moved: dict[int, tuple[Any, Any]] = {}  # the original is kept, so that its id is not used again
        self._open: set[int] = set()

    def move(self, value: Any, path: str) -> Any:
        """`value` on the device; the same object where nothing in it had to move."""
        if value is None or isinstance(value, (_PLAIN, self.skip)):
            return value
        known = self._moved.get(id(value))
        if known is not None:
            return known[1]
        if id(value) in self._open:
            raise ValueError(f"{path} contains itself, and cannot be moved")
        self._open.add(id(value))
        try:
            moved = self._move(value, path)
        finally:
            self._open.discard(id(value))
        self._moved[id(value)] = value, moved
        return moved

    def _move(self, value: Any, path: str) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value, path)
        if isinstance(value, torch.nn.Module):
            return value.to(self.device)
        if callable(getattr(type(value), "to", None)) and placement.kind_of(value) is not None:
            return value.to(self.device)  # packed sequences, batches of tokenizers and of graphs
        rebuild = _rebuilder(value)
        if rebuild is not None:
            return rebuild(self, value, path)
        reason = _why_not(value)
        if reason:
            raise TypeError(f"{path} cannot be moved to {self.device}: {reason}")
        return value

    def _tensor(self, tensor: torch.Tensor, path: str) -> torch.Tensor:
        if tensor.device == self.device:
            return tensor
        if isinstance(tensor, torch.nn.Parameter):
            raise TypeError(
                f"{path} is a parameter on {tensor.device}, and its copy would be none: move the module that owns it"
            )
        try:
            if self.pin and tensor.device.type == "cpu" and not tensor.is_pinned():
                tensor = tensor.pin_memory()
            return tensor.to(self.device, non_blocking=self.non_blocking)
        except Exception as error:
            error.add_note(f"to_device: this was {path}")
            raise

    def all(self, items: Iterable[tuple[str, Any]]) -> tuple[list[Any], bool]:
        """The moved items, and whether any of them is another object than before."""
        before = list(items)
        after = [self.move(value, path) for path, value in before]
        return after, any(new is not old for new, (_, old) in zip(after, before, strict=True))


# Numbers, texts and their like, which are on no device.
_PLAIN = (bool, int, float, complex, str, bytes, bytearray, enum.Enum, range, slice, torch.Size, torch.dtype,
          torch.device, type, types.ModuleType)  # fmt: skip


def _list(move: _Move, value: Any, path: str) -> Any:
    items, changed = move.all((f"{path}[{i}]", item) for i, item in enumerate(value))
    if not changed:
        return value
    if type(value) is list:
        return items
    new = copy.copy(value)  # a deque's length, attributes of a subclass
    for i, item in enumerate(items):
        new[i] = item
    return new


def _tuple(move: _Move, value: Any, path: str) -> Any:
    fields = getattr(value, "_fields", ())
    paths = (f"{path}.{fields[i]}" if i < len(fields) else f"{path}[{i}]" for i in range(len(value)))
    items, changed = move.all(zip(paths, value, strict=True))
    if not changed:
        return value
    if hasattr(type(value), "n_sequence_fields"):  # torch.return_types.max and its like
        return type(value)(items)
    new = tuple.__new__(type(value), items)
    if hasattr(value, "__dict__"):
        vars(new).update(vars(value))
    return new


def _dict(move: _Move, value: Any, path: str) -> Any:
    for key in value:
        if move.move(key, f"the key {type(key).__name__} of {path}") is not key:
            raise TypeError(f"{path} has tensors as keys, which a move would replace: use their names or numbers")
    keys = list(value)
    items, changed = move.all((f"{path}[{key!r}]" if isinstance(key, str | int) else path, value[key]) for key in keys)
    if not changed:
        return value
    new = copy.copy(value)  # keeps the order, a default factory, attributes of a subclass
    for key, item in zip(keys, items, strict=True):
        new[key] = item
    return new


def _set(move: _Move, value: Any, path: str) -> Any:
    items, changed = move.all((f"an element of {path}", item) for item in value)
    return type(value)(items) if changed else value


def _object(move: _Move, value: Any, path: str) -> Any:
    names = list(_fields_of(value))
    items, changed = move.all((f"{path}.{name}", getattr(value, name)) for name in names)
    if not changed:
        return value
    new = copy.copy(value)
    for name, item in zip(names, items, strict=True):
        object.__setattr__(new, name, item)  # the class may be frozen
    return new


def _fields_of(value: Any) -> Iterator[str]:
    names = dict.fromkeys(field.name for field in dataclasses.fields(value)) if dataclasses.is_dataclass(value) else {}
    names.update(dict.fromkeys(field.name for field in getattr(type(value), "__attrs_attrs__", ())))
    names.update(dict.fromkeys(getattr(value, "__dict__", ())))
    return (name for name in names if hasattr(value, name))


_Rebuild = Callable[[_Move, Any, str], Any]
_CONTAINERS: tuple[tuple[Any, _Rebuild], ...] = (
    (list, _list), (deque, _list), (tuple, _tuple), (dict, _dict), (UserDict, _dict), ((set, frozenset), _set),
    (types.SimpleNamespace, _object),
)  # fmt: skip


def _rebuilder(value: Any) -> _Rebuild | None:
    found = next((rebuild for kind, rebuild in _CONTAINERS if isinstance(value, kind)), None)
    if found is None and (dataclasses.is_dataclass(value) or hasattr(type(value), "__attrs_attrs__")):
        return _object
    return found


def _why_not(value: Any) -> str:
    """Why an object is not moved; "" where nothing with a device is in it."""
    if isinstance(value, Iterator):
        return f"a {type(value).__name__} gives its items later: move each of them"
    kind = placement.kind_of(value)
    if kind is None or kind == "function":
        return ""
    if kind == "array":
        return f"a {type(value).__module__.partition('.')[0]} array is no tensor: torch.as_tensor(), or skip=its class"
    advice = {
        "loader": "move each batch in the loop",
        "dataset": "move what it gives, in the loop",
        "optimizer": "make it after the model was moved, or load its state with the model there",
        "generator": "make one there, torch.Generator(device)",
    }.get(kind, "give its class a method to(device), or name it in skip=")
    inside = next(placement.walk(value, limit=1), None)
    where = f" with a tensor at {inside.path}" if inside is not None and inside.path else ""
    return f"an object of type {type(value).__name__}{where}; {advice}"

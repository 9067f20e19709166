"""Facts of many tensors at the price of few."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ipydevice.placement.kinds import is_a, torch_class
from ipydevice.placement.tensors import (
    Memory,
    Shape,
    bytes_of,
    device_of,
    dtype_of,
    grad_of,
    inner_tensors,
    read,
    shape_of,
    storage_of,
)

_new = tuple.__new__


class Facts(NamedTuple):
    """All that a table tells of one tensor."""

    device: str
    shape: Shape | None
    dtype: str | None
    bytes: int
    memory: Memory | None
    requires_grad: bool


class FactReader:
    """Reads many tensors at the price of few: names of devices are made once, and of torch's own two classes
    attributes are read as such, which in a `quiet()` block asks nobody and takes half the time of ``__get__``.

    Use it in one `quiet()` block and throw it away; virtual GPUs may be switched on later.
    """

    def __init__(self) -> None:
        self._classes = (torch_class("tensor"), torch_class("parameter"))
        self._names: dict[Any, str] = {}
        self._sizes: dict[Any, tuple[str, int]] = {}  # of types: their names, bytes of an element
        self.parts: dict[int, Any] = {}  # the `ClassParts` that `members` fills, of the classes met so far
        self.unmoved: dict[tuple[int, tuple[str, ...]], bool] = {}  # what `listing.methods` has read of them

    def _name(self, thing: Any) -> str:
        name = self._names.get(thing)
        if name is None:
            name = self._names[thing] = str(thing).removeprefix("torch.")
        return name

    def device(self, t: Any) -> str:
        """`device_of` of a tensor."""
        cls = type(t)
        if cls is self._classes[0] or cls is self._classes[1]:
            return self._name(t.device)
        return device_of(t)

    def devices(self, tensors: Iterable[Any]) -> tuple[str, ...]:
        """The devices of many tensors, each once, in the order in which they are met."""
        plain, parameter = self._classes
        met: dict[Any, None] = {}
        for t in tensors:
            cls = type(t)
            met[t.device if cls is plain or cls is parameter else device_of(t)] = None
        return tuple(dict.fromkeys(map(str, met)))

    def with_gradients(self, tensors: Iterable[Any]) -> list[tuple[Any, Any]]:
        """Tensors that hold a gradient, with it."""
        listed = list(tensors)
        if self._are_plain(listed):
            # `.grad` of a tensor that is no leaf would warn
            return [(t, t.grad) for t in listed if t.is_leaf and t.grad is not None]
        return [(t, gradient) for t in listed if (gradient := grad_of(t)) is not None]

    def gradients(self, tensors: Iterable[Any]) -> Iterator[Any]:
        """The gradients that the tensors hold."""
        return (gradient for _, gradient in self.with_gradients(tensors))

    def stray_gradients(self, tensors: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Tensors with gradients that lie on another device."""
        for t, gradient in self.with_gradients(tensors):
            if self.device(gradient) != self.device(t):
                yield t, gradient

    def held(self, tensors: Iterable[Any]) -> Iterator[tuple[str, Any, int]]:
        """The memory of the tensors, each once: its device, its identity and how much it is."""
        memory: dict[Any, tuple[str, int]] = {}
        self.tally(tensors, memory)
        return ((device, identity, size) for identity, (device, size) in memory.items())

    def tally(self, tensors: Iterable[Any], memory: dict[Any, tuple[str, int]]) -> list[str]:
        """The device of each tensor; their memory goes into `memory`, by identity, as device and bytes."""
        listed = list(tensors)
        if not self._are_plain(listed):
            return [self._tally_one(t, memory) for t in listed]
        names = self._names
        devices: list[str] = []
        for t in listed:  # one loop: to keep all storages for a second one takes longer
            device = names.get(t.device) or self._name(t.device)
            devices.append(device)
            try:
                storage = t.untyped_storage()
                memory[storage._cdata] = device, storage.nbytes()
            except (NotImplementedError, RuntimeError):  # sparse tensors have no storage of their own
                self._tally_one(t, memory)
        if "meta" in devices:  # there a storage tells a size that is not there
            memory.update({one: (device, 0) for one, (device, _) in memory.items() if device == "meta"})
        return devices

    def _are_plain(self, tensors: list[Any]) -> bool:
        """Whether all are of exactly the two classes of torch's own, compared by identity.

        Their attributes are torch's, so in a `quiet()` block reading them asks nobody; written as
        attributes in a comprehension that takes half of the time of calling ``__get__``.
        """
        return {id(cls) for cls in self._classes}.issuperset(map(id, map(type, tensors)))

    def _tally_one(self, t: Any, memory: dict[Any, tuple[str, int]]) -> str:
        device = self.device(t)
        own = storage_of(t)
        parts = inner_tensors(t) if own is None else ()
        if own is not None:
            memory[own[0]] = device, own[1]
        elif not parts or is_a(t, "uninitialized"):
            memory["tensor", id(t)] = device, bytes_of(t)
        for part in parts:  # whose memory others may hold as well, as FSDP does that of its DTensors
            self._tally_one(part, memory)
        return device

    def facts(self, t: Any) -> Facts:
        """Device, shape, type, bytes and memory of a tensor."""
        cls = type(t)
        if cls is not self._classes[0] and cls is not self._classes[1]:
            return self._slow(t)
        where = t.device
        device = self._names.get(where) or self._name(where)
        try:
            # Sparse and opaque tensors have no storage, strided nested ones no sizes: both refuse.
            storage, shape, dtype = t.untyped_storage(), (*t.shape,), t.dtype
        except (NotImplementedError, RuntimeError):
            return self._slow(t)
        if device == "meta":
            return self._slow(t)
        held = storage.nbytes()
        name, count = self._sizes.get(dtype) or self._size(dtype)
        for size in shape:
            count *= size
        facts = device, shape, name, count if count < held else held, (storage._cdata, held), t.requires_grad
        return _new(Facts, facts)  # without the function that a named tuple's class puts around it

    def _size(self, dtype: Any) -> tuple[str, int]:
        found = self._sizes[dtype] = self._name(dtype), dtype.itemsize
        return found

    def _slow(self, t: Any) -> Facts:
        needs = bool(read(t, "requires_grad"))
        return Facts(device_of(t), shape_of(t), dtype_of(t), bytes_of(t), storage_of(t), needs)

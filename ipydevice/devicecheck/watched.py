"""The calls of torch that are looked at even when they work: copies, waits, and composites that draw numbers.

Every other call costs one look into a dictionary.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch

from ipydevice import placement
from ipydevice.devicecheck.operands import tensors_of

HOST = ("cpu", "meta")
PINNED = "cpu (pinned)"


class Facts(NamedTuple):
    """What one call moved."""

    kind: Literal["copy", "sync"]
    source: str
    target: str
    tensor: torch.Tensor | None  # what was moved; None where all of a device is waited for
    bytes: int


Measure = Callable[[tuple[Any, ...], dict[str, Any], Any], Facts | None]


@dataclass(frozen=True, slots=True)
class Watched:
    """What to look at in one function of torch."""

    call: str = ""  # as the report says it: ".item()"
    measure: Measure | None = None  # from arguments and result, after the call
    explicit: bool = False
    draws: bool = False  # a composite that may draw random numbers before it fails


def _of_self(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor | None:
    found = args[0] if args else next(iter(kwargs.values()), None)
    return found if placement.is_tensor(found) else None


def _on_device(tensor: torch.Tensor | None) -> str | None:
    """The accelerator that holds `tensor`; None for the host."""
    if tensor is None or (type(tensor) is torch.Tensor and tensor.is_cpu):  # no mode is on in here
        return None
    where = placement.device_of(tensor)
    return None if where in HOST else where


def _moved(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    tensor = _of_self(args, kwargs)
    if tensor is None or tensor is result or not placement.is_tensor(result):
        return None
    source, target = placement.device_of(tensor), placement.device_of(result)
    if source == target or "meta" in (source, target):
        return None
    return Facts("copy", source, target, tensor, placement.bytes_of(result))


def _pinned(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    """The host copies into memory that a card can read; a tensor that is pinned comes back itself."""
    tensor = _of_self(args, kwargs)
    return (
        None
        if tensor is None or tensor is result
        else Facts("copy", HOST[0], PINNED, tensor, placement.bytes_of(tensor))
    )


def _copied_into(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    """``x.copy_(y)`` and ``x[i] = y``: the last argument goes to where the first one is."""
    given: Any = args[-1] if len(args) > 1 else kwargs.get("src")
    if not placement.is_tensor(given):
        return None
    source, target = placement.device_of(given), placement.device_of(args[0])
    if source == target or "meta" in (source, target):
        return None
    return Facts("copy", source, target, given, placement.bytes_of(given))


def _assigned(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    return _copied_into(args, kwargs, result) or _indexed(args[:2], kwargs, result)


def _read(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    """The host waits for the values of a tensor."""
    tensor = _of_self(args, kwargs)
    where = _on_device(tensor)
    if tensor is None or where is None:
        return None
    return Facts("sync", where, "cpu", tensor, placement.bytes_of(tensor))


def _counted(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    """The host waits for a number: how many there are, whether all are equal."""
    tensor = _of_self(args, kwargs)
    where = _on_device(tensor)
    return None if tensor is None or where is None else Facts("sync", where, "cpu", tensor, 8)


def _where(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    return _counted(args, kwargs, result) if len(args) + len(kwargs) == 1 else None


def _repeated(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    told = kwargs.get("output_size") is not None
    repeats = args[1] if len(args) > 1 else kwargs.get("repeats", args[0] if args else None)
    return None if told or not placement.is_tensor(repeats) else _counted((repeats,), {}, result)


def _one_hot(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    told = kwargs.get("num_classes", args[1] if len(args) > 1 else -1)
    return _counted(args, kwargs, result) if told == -1 else None


def _drawn(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    """ATen/native/Distributions.cpp, `multinomial_out`: what is drawn from is checked first, but for many with
    replacement."""
    count = kwargs.get("num_samples", args[1] if len(args) > 1 else None)
    replacement = kwargs.get("replacement", args[2] if len(args) > 2 else False)
    return None if replacement and count != 1 else _counted(args, kwargs, result)


def _sparse(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    """The largest index is read where no size is given, and all where they are to be checked."""
    told = kwargs.get("size") is not None or len(args) > 2
    return None if told and not kwargs.get("check_invariants") else _counted(args, kwargs, result)


def _scalar(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    """``torch.arange(n)`` and ``torch.full(size, value)`` of a tensor read its number."""
    for part in tensors_of([args, kwargs]):
        where = _on_device(part)
        if where is not None:
            return Facts("sync", where, "cpu", part, placement.bytes_of(part))
    return None


_PLAIN_INDICES = (int, type(None), type(...), str, bool)


def _indexed(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    """A mask has to be counted, one number read, and an index on the host copied (ATen/TensorIndexing.h)."""
    index = args[1] if len(args) > 1 else None
    if type(index) in _PLAIN_INDICES:
        return None
    where = _on_device(args[0] if placement.is_tensor(args[0]) else None)
    if where is None:
        return None
    if type(index) is slice or type(index) is tuple:
        bound = _bound(index)
        if bound is not None:
            return Facts("sync", where, "cpu", bound, placement.bytes_of(bound))
    for part in tensors_of(index):
        mask = part.dtype in (torch.bool, torch.uint8)
        number = part.dim() == 0 and not mask
        if placement.device_of(part) == "cpu":
            if not number:
                return Facts("copy", "cpu", where, part, placement.bytes_of(part))
        elif mask or number:
            return Facts("sync", where, "cpu", part, 8)
    return None


def _bound(index: Any) -> torch.Tensor | None:
    """A tensor on an accelerator as the bound of a slice: ``x[:n]``."""
    for part in index if type(index) is tuple else (index,):
        if type(part) is slice:
            for bound in (part.start, part.stop, part.step):
                if placement.is_tensor(bound) and _on_device(bound) is not None:
                    found: torch.Tensor = bound
                    return found
    return None


def _made(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Facts | None:
    """``torch.tensor(data, device=...)``: the data come from the host."""
    data: Any = args[0] if args else kwargs.get("data")
    if placement.is_tensor(data):
        return _moved((data,), {}, result)
    if type(data) in (list, tuple):
        for part in tensors_of(data):
            where = _on_device(part)
            if where is not None:  # every element is read by itself
                return Facts("sync", where, "cpu", part, placement.bytes_of(part) * len(data))
    where = _on_device(result) if placement.is_tensor(result) else None
    return None if where is None else Facts("copy", "cpu", where, result, placement.bytes_of(result))


_METHODS: dict[str, Watched] = {
    **{name: Watched(f".{name}()", _moved, explicit=True) for name in ("to", "cuda", "cpu", "xpu", "type", "type_as")},
    "pin_memory": Watched(".pin_memory()", _pinned, explicit=True),
    "copy_": Watched(".copy_()", _copied_into, explicit=True),
    "new_tensor": Watched(".new_tensor()", lambda args, kwargs, result: _made(args[1:], kwargs, result), explicit=True),
    "__setitem__": Watched("assignment", _assigned),
    "__getitem__": Watched("indexing", _indexed),
    "item": Watched(".item()", _read),
    "tolist": Watched(".tolist()", _read),
    "numpy": Watched(".numpy()", _read),
    "__array__": Watched("numpy.asarray()", _read),
    "__bool__": Watched("if tensor", _read),
    "__int__": Watched("int()", _read),
    "__float__": Watched("float()", _read),
    "__index__": Watched("as an index", _read),
    "__complex__": Watched("complex()", _read),
    "__repr__": Watched("repr()", _read),
    "__format__": Watched("format()", _read),
    "__contains__": Watched("in tensor", _counted),
}
_COUNTING = ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "equal", "allclose",
             "is_nonzero", "bincount")  # fmt: skip
_FUNCTIONS: dict[str, Watched] = {
    **{name: Watched(f"{name}()", _counted) for name in _COUNTING},
    "where": Watched("where()", _where),
    "repeat_interleave": Watched("repeat_interleave()", _repeated),
    "multinomial": Watched("multinomial()", _drawn, draws=True),
    "sparse_coo_tensor": Watched("sparse_coo_tensor()", _sparse),
    "arange": Watched("torch.arange()", _scalar),
    "linspace": Watched("torch.linspace()", _scalar),
    "full": Watched("torch.full()", _scalar),
    "tensor": Watched("torch.tensor()", _made, explicit=True),
    "as_tensor": Watched("torch.as_tensor()", _made, explicit=True),
    "asarray": Watched("torch.asarray()", _made, explicit=True),
}
# "When inputs are on a CUDA device, this function synchronizes that device with the CPU" (docs of torch.linalg).
_SOLVING = ("cholesky", "cond", "eig", "eigh", "eigvals", "eigvalsh", "inv", "ldl_factor", "lu_factor", "matrix_rank",
            "pinv", "solve", "svd", "svdvals")  # fmt: skip
# A composite in Python that names one of these may have drawn numbers when it fails.
_DRAWING = ("dropout", "rand", "bernoulli", "multinomial", "normal", "exponential", "uniform", "sdp", "dot_product")


def table() -> dict[Any, Watched]:
    """By function, as torch hands it to a mode now: virtual GPUs put their own in the place of torch's."""
    found: dict[Any, Watched] = {}
    functional = torch.nn.functional
    for name, function in vars(functional).items():
        if isinstance(function, types.FunctionType) and (_draws(function) or any(word in name for word in _DRAWING)):
            found[function] = Watched(draws=True)
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):  # dropout between layers
        found[getattr(torch._VF, name)] = Watched(draws=True)
    for name, watched in _METHODS.items():
        if hasattr(torch.Tensor, name):
            found[getattr(torch.Tensor, name)] = watched
    for name, watched in _FUNCTIONS.items():
        for owner in (torch, torch.Tensor):
            if hasattr(owner, name):
                found[getattr(owner, name)] = watched
    for name in _SOLVING:
        found[getattr(torch.linalg, name)] = Watched(f"linalg.{name}()", _counted)
    found[functional.one_hot] = Watched("one_hot()", _one_hot)
    return found


def _draws(function: types.FunctionType) -> bool:
    return any(word in name for name in function.__code__.co_names for word in _DRAWING)


def never_retried() -> frozenset[Any]:
    """The graph is gone after the first attempt: a second one would hide the user's error behind another."""
    return frozenset((torch.Tensor.backward, torch.autograd.grad, torch.autograd.backward))

"""Type names from before `torch.device`: `Tensor.type()`, ``torch.FloatTensor``, ``torch.cuda.FloatTensor``, `new`."""

from __future__ import annotations

from typing import Any

import torch

from ipydevice.virtual import cards
from ipydevice.virtual.moving import send, to
from ipydevice.virtual.patches import Patches, stands_in
from ipydevice.virtual.tags import device_of, on_card, tag
from ipydevice.virtual.texts import SCALARS, type_name

Tensor = torch.Tensor
_BY_NAME = {f"{name}Tensor": dtype for dtype, name in SCALARS.items() if not dtype.is_complex}
_TENSOR_TYPE = type(torch.FloatTensor)  # torch.tensortype, which has no public name
_OPTIONS = "layout=Strided, requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt)"


class LegacyType(type):
    """The type of ``torch.FloatTensor`` and its kin, which tests dtype and place of a tensor and makes one."""

    dtype: torch.dtype
    is_cuda: bool
    is_sparse = False
    layout = torch.strided
    original: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.dtype == cls.dtype
            and instance.layout is torch.strided
            and on_card(instance) == cls.is_cuda
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        where = cards.resolve("cuda") if cls.is_cuda else cards.CPU
        given = args[0] if args and isinstance(args[0], Tensor) else None
        if given is not None and device_of(given).type != where.type:
            scalar = str(cls.dtype).removeprefix("torch.").replace("32", "").replace("64", "")
            raise TypeError(
                f"expected TensorOptions(dtype={scalar}, device={where}, {_OPTIONS}) "
                f"(got TensorOptions(dtype={scalar}, device={device_of(given)}, {_OPTIONS}))"
            )
        cards.thread.factory_depth += 1
        try:
            made = cls.original(*args, **kwargs)
        finally:
            cards.thread.factory_depth -= 1
        return made if given is not None else send(made, where)

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def _legacy_type(name: str, original: Any, *, is_cuda: bool) -> LegacyType:
    module = "torch.cuda" if is_cuda else "torch"
    body = {"dtype": _BY_NAME[name], "is_cuda": is_cuda, "original": original, "__module__": module}
    return LegacyType(name, (), body)


def _parse(kind: Any) -> tuple[torch.dtype, str] | None:
    """dtype and place that a legacy type means; None: something that PyTorch itself must read."""
    if isinstance(kind, LegacyType):
        return kind.dtype, "cuda" if kind.is_cuda else "cpu"
    if isinstance(kind, _TENSOR_TYPE):  # taken from torch before the cards were switched on
        kind = f"{kind.__module__}.{kind.__name__}"
    if isinstance(kind, str):
        prefix, _, name = kind.rpartition(".")
        if name in _BY_NAME and prefix in ("torch", "torch.cuda"):
            return _BY_NAME[name], "cuda" if prefix == "torch.cuda" else "cpu"
    return None


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    if dtype is None:
        return type_name(self)
    wanted = _parse(dtype)
    if wanted is None:
        return torch._C.TensorBase.type(self, dtype, non_blocking, **kwargs)
    scalar, place = wanted
    # on a card already, it stays on that card
    return to(self, device_of(self) if device_of(self).type == place else place, scalar)


def _new(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    device = kwargs.pop("device", None)
    cards.thread.factory_depth += 1
    try:
        made = torch._C.TensorBase.new(self, *args, **kwargs)
    finally:
        cards.thread.factory_depth -= 1
    return tag(made, device_of(self) if device is None else cards.resolve(device))


def _set_default(kind: Any) -> None:
    wanted = _parse(kind)
    if wanted is None:
        return torch._C._set_default_tensor_type(kind)
    dtype, place = wanted
    torch.set_default_dtype(dtype)
    torch.set_default_device(None if place == "cpu" else place)
    return None


def install(patches: Patches) -> None:
    for name in _BY_NAME:
        host = getattr(torch, name)
        patches.replace(torch, name, _legacy_type(name, host, is_cuda=False))
        if hasattr(torch.cuda, name):
            patches.replace(torch.cuda, name, _legacy_type(name, host, is_cuda=True))
    patches.replace(Tensor, "type", stands_in(torch._C.TensorBase.type, _type))
    patches.replace(Tensor, "new", stands_in(torch._C.TensorBase.new, _new))
    patches.replace(torch, "set_default_tensor_type", _set_default)

"""What a tensor says of itself (`device`, `is_cuda`, ...), and what may be assigned to its `grad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import handle_torch_function, has_torch_function_unary

from ipydevice.virtual import cards, texts
from ipydevice.virtual.moving import send
from ipydevice.virtual.patches import Patches, stands_in
from ipydevice.virtual.tags import device_of, on_card, storage_of

Tensor = torch.Tensor
Base: Any = torch._C.TensorBase


def _property(name: str, getter: Callable[[Tensor], Any]) -> property:
    """A property that tensor subclasses and modes see as they see PyTorch's own: ``Tensor.<name>.__get__``."""

    def read(self: Tensor) -> Any:
        if has_torch_function_unary(self):
            return handle_torch_function(getattr(Tensor, name).__get__, (self,), self)
        return getter(self)

    return property(read)


def _gradient() -> property:
    get, put, delete = Base.grad.__get__, Base.grad.__set__, Base.grad.__delete__

    def read(self: Tensor) -> Any:
        if has_torch_function_unary(self):  # PyTorch keeps `Tensor.grad.__get__` among those it does not wrap
            return handle_torch_function(vars(Tensor)["grad"].__get__, (self,), self)
        return get(self)

    def assign(self: Tensor, value: Any) -> None:
        if isinstance(value, Tensor) and not has_torch_function_unary(self):
            check_assigned_gradient(self, value)
        put(self, value)

    return property(read, assign, delete)


def check_assigned_gradient(self: Tensor, gradient: Tensor) -> None:
    """torch/csrc/autograd/python_variable.cpp, THPVariable_set_grad"""
    theirs, ours = device_of(gradient), device_of(self)
    if theirs.type != ours.type:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{theirs.type}' to a tensor with device type "
            f"'{ours.type}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if theirs != ours:
        # PyTorch prints the int8 index as a raw character; index 0 is NUL and ends the C string
        text = (
            f"attempting to assign a gradient located on device with index '{chr(theirs.index)}' to a tensor located "
            f"on device with index '{chr(ours.index)}'. Please ensure that the gradient and the tensor are on the "
            "same device"
        )
        raise RuntimeError(text.partition("\0")[0])


def _get_device(self: Tensor) -> int:
    device = device_of(self)
    return device.index if device.type == "cuda" else Base.get_device(self)


def _refuse_numpy(self: Tensor) -> None:
    if on_card(self):
        raise TypeError(
            f"can't convert {device_of(self)} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
            "host memory first."
        )


def _numpy(self: Tensor, *, force: bool = False) -> Any:
    if force:
        return Base.numpy(send(self.detach(), cards.CPU), force=True)
    _refuse_numpy(self)
    return Base.numpy(self)


def _array(original: Callable[..., Any]) -> Callable[..., Any]:
    def convert(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        _refuse_numpy(self)
        return original(self, *args, **kwargs)

    return convert


def _pin_memory(self: Tensor, device: Any = None) -> Tensor:
    if on_card(self):
        raise RuntimeError(f"cannot pin '{texts.type_name(self)}' only dense CPU tensors can be pinned")
    if _is_pinned(self):
        return self
    pinned = self.clone()
    storage_of(pinned)._virtual_pinned = True  # type: ignore[attr-defined]
    return pinned


def _is_pinned(self: Tensor, device: Any = None) -> bool:
    return bool(getattr(storage_of(self), "_virtual_pinned", False))


def _on_host_only(name: str) -> Callable[..., Any]:
    """torch/csrc/utils/tensor_apply.cpp: a Python function for each element"""
    original = getattr(Base, name)

    def run(self: Tensor, *args: Any) -> Any:
        if on_card(self):
            raise TypeError(f"{name} is only implemented on CPU tensors")
        return original(self, *args)

    return run


def _record_stream(self: Tensor, stream: Any) -> None:
    return None


def install(patches: Patches) -> None:
    patches.replace(Tensor, "device", _property("device", device_of))
    patches.replace(Tensor, "is_cuda", _property("is_cuda", on_card))
    patches.replace(Tensor, "is_cpu", _property("is_cpu", lambda self: device_of(self).type == "cpu"))
    patches.replace(Tensor, "grad", _gradient())
    methods: dict[str, Callable[..., Any]] = {
        "get_device": _get_device,
        "numpy": _numpy,
        "pin_memory": _pin_memory,
        "is_pinned": _is_pinned,
        "record_stream": _record_stream,
        "apply_": _on_host_only("apply_"),
        "map_": _on_host_only("map_"),
    }
    for name, replacement in methods.items():
        patches.replace(Tensor, name, stands_in(getattr(Base, name), replacement))
    if hasattr(torch, "get_device"):
        patches.replace(torch, "get_device", stands_in(torch.get_device, _get_device))
    patches.replace(Tensor, "__array__", stands_in(Tensor.__array__, _array(Tensor.__array__)))

"""Copies between devices: `to`, `cuda`, `cpu`, `type`, `type_as`, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ipydevice.virtual import cards
from ipydevice.virtual.patches import Patches, stands_in
from ipydevice.virtual.tags import ANY, device_of, raw_tag, tag

Tensor = torch.Tensor
_stay: Callable[..., Tensor] = torch._C.TensorBase.to  # what a CPU build can do by itself


def move(tensor: Tensor, device: torch.device, **options: Any) -> Tensor:
    """A copy of `tensor` on another device (a card or the host), with the gradient of a copy."""
    copied: Tensor = torch.ops.aten._to_copy.default(tensor, **options)
    tag(copied, device)
    if copied.grad_fn is not None:
        source = device_of(tensor)
        copied.grad_fn.register_hook(_GradientHome(source))
    return copied


class _GradientHome:
    """The gradient of a copy between devices goes back to where the original is (ToCopyBackward0 on CUDA)."""

    def __init__(self, source: torch.device) -> None:
        self.source = source

    def __call__(self, grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(None if grad is None else send(grad, self.source) for grad in grad_inputs)


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """`tensor` itself where it is on `device` already, else a copy there."""
    return tensor if device_of(tensor) == device else move(tensor, device)


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The device (None: stays) and the other options of `Tensor.to`, in all its overloads."""
    rest, options = list(args), dict(kwargs)
    device: Any = options.pop("device", None)
    other = options.pop("other", None)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    if other is not None:
        device = device_of(other)
        options["dtype"] = other.dtype
    elif rest and not isinstance(rest[0], torch.dtype):
        device = rest.pop(0)
    names = ["non_blocking", "copy"] if "dtype" in options else ["dtype", "non_blocking", "copy"]
    options.update(zip(names, rest, strict=False))
    return device, {name: value for name, value in options.items() if value is not None}


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    device, options = _parse_to(args, kwargs)
    if device is None:
        return _stay(self, **options)
    target = cards.resolve(device)
    if target.type not in ("cuda", "cpu"):
        return _stay(self, target, **options)
    if device_of(self) == target:
        if raw_tag(self) is ANY:
            tag(self, target)
        return _stay(self, **options)
    if self.is_meta:
        return _stay(self, cards.CPU, **options)  # PyTorch's own refusal: there are no data to copy
    options.pop("copy", None)
    options.pop("non_blocking", None)
    return move(self, target, **options)


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    target = cards.resolve("cuda" if device is None else device)
    if target.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")  # python_variable_methods.cpp, THPVariable_cuda
    return to(self, target, memory_format=memory_format)


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    return to(self, cards.CPU, memory_format=memory_format)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    return to(self, other)


def _numbered(parse: Callable[..., Any]) -> Callable[..., Any]:
    """``module.to(1)``: PyTorch asks its build for the accelerator that a number means."""

    def parsed(*args: Any, **kwargs: Any) -> Any:
        if args and type(args[0]) is int:
            args = (cards.resolve(args[0]), *args[1:])
        if type(kwargs.get("device")) is int:
            kwargs = {**kwargs, "device": cards.resolve(kwargs["device"])}
        return parse(*args, **kwargs)

    return parsed


def install(patches: Patches) -> None:
    patches.replace(torch._C._nn, "_parse_to", _numbered(torch._C._nn._parse_to))
    methods: dict[str, Callable[..., Any]] = {"to": to, "cuda": cuda, "cpu": cpu, "type_as": type_as}
    for name, replacement in methods.items():
        patches.replace(Tensor, name, stands_in(getattr(torch._C.TensorBase, name), replacement))
    # Lazy modules move parameters that have no shape yet, by functions that they know
    lazy: Any = vars(torch.nn.parameter)["UninitializedTensorMixin"]
    patches.replace(lazy, "_allowed_methods", [*lazy._allowed_methods, *(getattr(Tensor, name) for name in methods)])

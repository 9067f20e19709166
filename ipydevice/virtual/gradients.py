"""Checks of the autograd engine, which compares the devices of gradients in C++."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import has_torch_function_unary

from ipydevice.virtual.moving import send
from ipydevice.virtual.patches import Patches
from ipydevice.virtual.tags import device_of
from ipydevice.virtual.texts import cpp_type_name

Tensor = torch.Tensor
Device = torch.device


def _validated(gradient: Any, position: int, expected: Device, prefix: str) -> Any:
    """engine.cpp, validate_outputs: a scalar is moved silently, all else must be in place already."""
    if not isinstance(gradient, Tensor):
        return gradient
    found = device_of(gradient)
    if found == expected:
        return gradient
    if gradient.dim() == 0:
        return send(gradient, expected)
    raise RuntimeError(f"{prefix}invalid gradient at index {position} - expected device {expected} but got {found}")


def _make_grads(original: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients that the caller of `backward` or `grad` gives."""

    def make(outputs: Sequence[Any], grads: Sequence[Any], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        made = original(outputs, grads, *args, **kwargs)
        return tuple(
            _validated(gradient, position, device_of(output), "") if isinstance(output, Tensor) else gradient
            for position, (output, gradient) in enumerate(zip(outputs, made, strict=True))
        )

    return make


class _CheckedNode:
    """Hook on the node of a user's autograd.Function: each gradient must be where its forward input was."""

    def __init__(self, name: str, places: list[Device | None]) -> None:
        self.name = name
        self.places = places

    def __call__(self, grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if len(grad_inputs) != len(self.places):
            return None
        prefix = f"Function {self.name} returned an "
        return tuple(
            gradient if place is None else _validated(gradient, position, place, prefix)
            for position, (gradient, place) in enumerate(zip(grad_inputs, self.places, strict=True))
        )


def _apply(original: Any) -> Any:
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        out = original.__func__(cls, *args, **kwargs)
        for value in out if isinstance(out, tuple) else (out,):
            node = value.grad_fn if isinstance(value, Tensor) else None
            if node is not None and type(node) is getattr(cls, "_backward_cls", None):
                places: list[Device | None] = [device_of(value) for value in args if isinstance(value, Tensor)]
                node.register_hook(_CheckedNode(node.name(), places))
                break
        return out

    return classmethod(functools.update_wrapper(apply, original.__func__))


class _CheckedHook:
    """A user's tensor hook (python_hook.cpp, check_variable_result): it may not move the gradient."""

    def __init__(self, hook: Callable[[Tensor], Any]) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook, updated=())

    def __call__(self, gradient: Tensor) -> Any:
        result = self.hook(gradient)
        if isinstance(result, Tensor) and device_of(result).type != device_of(gradient).type:
            raise RuntimeError(
                f"hook '{getattr(self.hook, '__name__', '<unknown>')}' has changed the type of value "
                f"(was {cpp_type_name(gradient)} got {cpp_type_name(result)})"
            )
        return result


def _register_hook(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> Any:
        return original(self, hook if has_torch_function_unary(self) else _CheckedHook(hook))

    return register_hook


def install(patches: Patches) -> None:
    # Looked up in torch.autograd at each call, by backward() and by grad(), before the engine runs
    patches.replace(torch.autograd, "_make_grads", _make_grads(torch.autograd._make_grads))
    function = torch.autograd.Function
    patches.replace(function, "apply", _apply(vars(function)["apply"]))
    patches.replace(Tensor, "register_hook", _register_hook(Tensor.register_hook))

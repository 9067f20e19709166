"""Gradients that are not where their parameters are."""

from __future__ import annotations

from typing import Any

from ipydevice import placement
from ipydevice.placement import FactReader
from ipydevice.toolbox.troubles import DeviceMismatchError, need_module, some


def check_gradient_devices(model: Any, fix: bool = False) -> tuple[str, ...]:
    """Names of parameters whose gradient is on another device, as after ``p.data = p.data.cuda()``.

    Args:
        fix: move these gradients to their parameters, and return whose they were, in place of the error.

    Raises:
        DeviceMismatchError: there are some, and `fix` is off; optimizers and clipping would fail on them.
        TypeError: `model` is no `torch.nn.Module`.
    """
    need_module(model, "check_gradient_devices(model)")
    stray = []
    with placement.quiet():
        for name, parameter in model.named_parameters():
            for owner, gradient in FactReader().stray_gradients((parameter,)):
                stray.append((name, owner, placement.device_of(gradient), placement.device_of(owner)))
    if not stray:
        return ()
    if not fix:
        told = [f"{name}.grad on {on}, {name} on {wanted}" for name, _, on, wanted in stray]
        raise DeviceMismatchError(
            f"gradients are not where their parameters are: {some(told)}; "
            "optimizer.zero_grad(set_to_none=True), or check_gradient_devices(model, fix=True)",
            tuple((f"{name}.grad", on) for name, _, on, _ in stray),
        )
    for _, parameter, _, _ in stray:
        gradient, parameter.grad = parameter.grad, None
        parameter.grad = gradient.to(parameter.device)
    return tuple(name for name, *_ in stray)

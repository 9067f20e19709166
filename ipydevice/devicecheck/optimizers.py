"""Optimizers whose state is not with its parameters.

Before a fused or foreach step torch sorts all tensors by device in C++ and fails there, where
nothing can be repaired.  The step over single tensors computes the same with ordinary calls;
such an optimizer takes it for this run, and the ordinary calls tell what is where.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook


class SingleSteps:
    """While it is open, optimizers with stray state step tensor by tensor."""

    def __init__(self) -> None:
        self._before: dict[int, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
        self._hooks = [
            register_optimizer_step_pre_hook(self._prepare),
            register_optimizer_step_post_hook(self._put_back),
        ]

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()
        for saved in self._before.values():  # a step that failed has no post hook
            _put_back(saved)
        self._before.clear()

    def _prepare(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if id(optimizer) in self._before or not _has_stray_state(optimizer):
            return
        saved = []
        for group in optimizer.param_groups:
            flags: dict[str, Any] = {name: group[name] for name in ("foreach", "fused") if name in group}
            saved.append((group, flags))
            group.update(dict.fromkeys(flags, False))
        self._before[id(optimizer)] = saved

    def _put_back(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        _put_back(self._before.pop(id(optimizer), []))


def _put_back(saved: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    for group, flags in saved:
        group.update(flags)


def _has_stray_state(optimizer: Optimizer) -> bool:
    """Whether a parameter's state is elsewhere; step counters may stay on the host.

    Every step passes here, so devices are read by the shortest way that neither mode nor subclass sees.
    """
    device_of = torch.Tensor.device.__get__
    with torch._C.DisableTorchFunction():
        for parameter, state in optimizer.state.items():
            if not issubclass(type(parameter), torch.Tensor) or type(state) is not dict:
                continue  # an optimizer of somebody's own may keep anything there
            home = device_of(parameter)
            for held in state.values():
                if issubclass(type(held), torch.Tensor) and device_of(held) != home and held.dim():
                    return True
    return False

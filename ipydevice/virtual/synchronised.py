"""The kernels of ``nn.SyncBatchNorm``, which PyTorch has for accelerators alone (native/cuda/Normalization.cu).

Between them PyTorch's own Python gathers statistics across the process group, which is gloo here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ipydevice.virtual.patches import Patches, stands_in
from ipydevice.virtual.tags import on_card

Tensor = torch.Tensor


def _all_but_channels(x: Tensor) -> list[int]:
    return [dim for dim in range(x.dim()) if dim != 1]


def _per_channel(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape(1, -1, *[1] * (x.dim() - 2))


def _stats(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Mean and 1/deviation of each channel."""
    variance, mean = torch.var_mean(x.float(), _all_but_channels(x), correction=0)
    return mean, (variance + eps).rsqrt()


def _gather(
    x: Tensor,
    means: Tensor,
    invstds: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Mean and 1/deviation of all ranks together, from ``means`` and ``invstds`` of shape (ranks, channels)."""
    weights, total = counts.reshape(-1, 1), counts.sum()
    mean = (weights * means).sum(0) / total
    variance = (weights * (invstds**-2 - eps + (means - mean) ** 2)).sum(0) / total
    if running_mean is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    if running_var is not None:
        running_var.lerp_((variance * total / (total - 1)).to(running_var.dtype), momentum)
    return mean, (variance + eps).rsqrt()


def _normalise(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: float
) -> Tensor:
    scale = invstd if weight is None else invstd * weight
    out = (x - _per_channel(mean, x)) * _per_channel(scale, x)
    return (out if bias is None else out + _per_channel(bias, x)).to(x.dtype)


def _reduce(
    gradient: Tensor, x: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None, *needed: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    dims = _all_but_channels(x)
    total = gradient.float().sum(dims)
    along = (gradient * (x - _per_channel(mean, x))).float().sum(dims)
    dtype = mean.dtype if weight is None else weight.dtype
    return total, along, (along * invstd).to(dtype), total.to(dtype)


def _input_gradient(
    gradient: Tensor,
    x: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    total: Tensor,
    along: Tensor,
    counts: Tensor,
) -> Tensor:
    n = counts.sum()
    scale = invstd if weight is None else invstd * weight
    centred = (x - _per_channel(mean, x)) * _per_channel(invstd**2 * along / n, x)
    return ((gradient - _per_channel(total / n, x) - centred) * _per_channel(scale, x)).to(x.dtype)


_KERNELS: dict[str, Callable[..., Any]] = {
    "batch_norm_stats": _stats,
    "batch_norm_gather_stats_with_counts": _gather,
    "batch_norm_elemt": _normalise,
    "batch_norm_backward_reduce": _reduce,
    "batch_norm_backward_elemt": _input_gradient,
}


def _on_cards(original: Callable[..., Any], kernel: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Tensor, *args: Any) -> Any:
        return kernel(x, *args) if on_card(x) else original(x, *args)

    return stands_in(original, run)


def install(patches: Patches) -> None:
    for name, kernel in _KERNELS.items():
        original = getattr(torch, name)
        patches.replace(torch, name, _on_cards(original, kernel))

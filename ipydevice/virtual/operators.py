"""Checks that PyTorch makes in C++ on whole operators, before anything reaches a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ipydevice.virtual import texts
from ipydevice.virtual.cards import CPU
from ipydevice.virtual.moving import send
from ipydevice.virtual.patches import Patches, stands_in
from ipydevice.virtual.tags import device_of, on_card

Tensor = torch.Tensor
F = torch.nn.functional


def _recurrent(original: Callable[..., Any]) -> Callable[..., Any]:
    """native/RNN.cpp, check_attributes: the hidden state first, then the parameters."""

    def run(x: Tensor, *args: Any) -> Any:
        packed = isinstance(args[0], Tensor) and not isinstance(args[2], bool)  # (x, batch_sizes, hx, params, ...)
        hidden, parameters = (args[1], args[2]) if packed else (args[0], args[1])
        place = device_of(x)
        for role, tensors in (("hidden", hidden), ("parameter", parameters)):
            for tensor in [tensors] if isinstance(tensors, Tensor) else tensors:
                if device_of(tensor) != place:
                    raise RuntimeError(
                        f"Input and {role} tensors are not at the same device, found input tensor at {place} and "
                        f"{role} tensor at {device_of(tensor)}"
                    )
        return original(x, *args)

    return run


def _attention(original: Callable[..., Any]) -> Callable[..., Any]:
    """native/transformers/attention.cpp, validate_sdpa_input"""

    def run(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Any:
        q, k, v = device_of(query), device_of(key), device_of(value)
        if not q == k == v:
            raise RuntimeError(
                "Expected query, key, and value to have the same device type, but got "
                f"query.device: {q} key.device: {k} and value.device: {v} instead."
            )
        return original(query, key, value, *args, **kwargs)

    return run


def _pack(original: Callable[..., Any]) -> Callable[..., Any]:
    """native/PackedSequence.cpp, _pack_padded_sequence: the lengths are read on the host."""

    def run(x: Tensor, lengths: Tensor, *args: Any, **kwargs: Any) -> Any:
        if on_card(lengths):
            raise RuntimeError(
                f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {device_of(lengths)} "
                f"{texts.SCALARS.get(lengths.dtype, '')} tensor"
            )
        return original(x, lengths, *args, **kwargs)

    return run


def group_tensors(lists: list[list[Any]], with_indices: bool = False) -> dict[Any, Any]:
    """native/ForeachUtils.h, _group_tensors_by_first_tensors_device_and_dtype, by virtual devices."""
    groups: dict[Any, Any] = {}
    for position, first in enumerate(lists[0]):
        device, dtype = device_of(first), first.dtype
        for tensors in lists:
            if tensors and tensors[position] is not None and not _grouped(tensors[position], device, dtype):
                raise RuntimeError(
                    "Tensors of the same index must be on the same device and the same dtype except `step` tensors "
                    "that can be CPU and float32/64, and optimizer states that can be bfloat16 for mixed-precision "
                    "training"
                )
        lists_of_group, indices = groups.setdefault((device, dtype), ([[] for _ in lists], []))
        for target, tensors in zip(lists_of_group, lists, strict=True):
            if tensors:
                target.append(tensors[position])
        if with_indices:
            indices.append(position)
    return groups


def _grouped(tensor: Tensor, device: torch.device, dtype: torch.dtype) -> bool:
    if device_of(tensor) == device:
        return tensor.dtype in (dtype, torch.float32, torch.float64, torch.bfloat16)
    return device_of(tensor) == CPU and tensor.dtype in (torch.float32, torch.float64)


def _window(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """native/SpectralOps.cpp: stft and istft"""

    def run(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        window = kwargs.get("window", args[3] if len(args) > 3 else None)
        if isinstance(window, Tensor) and device_of(window) != device_of(x):
            raise RuntimeError(
                f"{name} input and window must be on the same device but got self on {device_of(x)} and window on "
                f"{device_of(window)}"
            )
        return original(x, *args, **kwargs)

    return run


def _grid_sampler(original: Callable[..., Any]) -> Callable[..., Any]:
    """native/GridSamplerUtils.h, check_grid_sampler_common"""

    def run(x: Tensor, grid: Tensor, *args: Any, **kwargs: Any) -> Any:
        if device_of(x) != device_of(grid):
            raise RuntimeError(
                f"grid_sampler(): expected input and grid to be on same device, but input is on {device_of(x)} and "
                f"grid is on {device_of(grid)}"
            )
        return original(x, grid, *args, **kwargs)

    return run


def _cell(original: Callable[..., Any]) -> Callable[..., Any]:
    """native/RNN.cpp, LSTMCell and GRUCell: on a card the gates are bias-free products, fused afterwards."""

    def run(x: Tensor, hidden: Any, w_ih: Tensor, w_hh: Tensor, *biases: Any) -> Any:
        first = hidden[0] if isinstance(hidden, list | tuple) else hidden
        for left, right in ((x, w_ih), (first, w_hh)):
            if on_card(x) and device_of(left) != device_of(right):
                raise texts.common_check("mat2", device_of(right), device_of(left), "wrapper_CUDA_mm")
        return original(x, hidden, w_ih, w_hh, *biases)

    return run


def _ctc_loss(original: Callable[..., Any]) -> Callable[..., Any]:
    """native/LossCTC.cpp takes lengths from anywhere and copies them where they are needed."""

    def run(
        log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, *args: Any, **kwargs: Any
    ) -> Any:
        lengths = (
            send(each, device_of(log_probs)) if isinstance(each, Tensor) else each
            for each in (input_lengths, target_lengths)
        )
        return original(log_probs, targets, *lengths, *args, **kwargs)

    return run


def _not_acceptable(tensor: Any) -> bool:
    return False  # and no warning that cuDNN is missing


def _table() -> dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]]:
    checks: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
        "_pack_padded_sequence": _pack,
        "stft": lambda original: _window(original, "stft"),
        "istft": lambda original: _window(original, "istft"),
        "grid_sampler": _grid_sampler,
        "ctc_loss": _ctc_loss,
        "lstm_cell": _cell,
        "gru_cell": _cell,
    }
    return checks | dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent)


def install(patches: Patches) -> None:
    for name, check in _table().items():
        original = getattr(torch._C._VariableFunctions, name)
        entry = stands_in(original, check(original))
        # `torch._VF` hands out the C++ functions; torch.stft and torch.istft are Python around it
        patches.replace(torch._VF, name, entry)
        if vars(torch).get(name) is original:
            patches.replace(torch, name, entry)
    attention = F.scaled_dot_product_attention
    patches.replace(F, "scaled_dot_product_attention", stands_in(attention, _attention(attention)))
    patches.replace(torch._C, "_group_tensors_by_device_and_dtype", group_tensors)
    patches.replace(torch.backends.cudnn, "is_acceptable", _not_acceptable)

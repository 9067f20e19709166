"""Checks that PyTorch makes in C++ on whole operators, before anything reaches a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from ipydevice.virtual.cards import CPU
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
                f"{_scalar(lengths)} tensor"
            )
        return original(x, lengths, *args, **kwargs)

    return run


def _scalar(tensor: Tensor) -> str:
    from ipydevice.virtual.texts import type_name

    return type_name(tensor, CPU).removeprefix("torch.").removesuffix("Tensor")


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


def check_gradients(tensors: Iterable[Any], gradients: Iterable[Any]) -> None:
    """autograd/engine.cpp, validate_outputs, for the gradients that the caller gives"""
    for position, (tensor, gradient) in enumerate(zip(tensors, gradients, strict=False)):
        if isinstance(tensor, Tensor) and isinstance(gradient, Tensor) and device_of(gradient) != device_of(tensor):
            raise RuntimeError(
                f"invalid gradient at index {position} - expected device {device_of(tensor)} but got "
                f"{device_of(gradient)}"
            )


def _sequence(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _engine(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(outputs: Any, gradients: Any, *args: Any, **kwargs: Any) -> Any:
        check_gradients(_sequence(outputs), _sequence(gradients))
        return original(outputs, gradients, *args, **kwargs)

    return run


def install(patches: Patches) -> None:
    functions = torch._C._VariableFunctions
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        original = getattr(functions, name)
        entry = stands_in(original, _recurrent(original))
        patches.replace(torch, name, entry)
        patches.replace(torch._VF, name, entry)
    original = functions._pack_padded_sequence
    entry = stands_in(original, _pack(original))
    patches.replace(torch, "_pack_padded_sequence", entry)
    patches.replace(torch._VF, "_pack_padded_sequence", entry)
    attention = F.scaled_dot_product_attention
    patches.replace(F, "scaled_dot_product_attention", stands_in(attention, _attention(attention)))
    patches.replace(torch._C, "_group_tensors_by_device_and_dtype", group_tensors)
    # looked up in their own modules at each call, by backward() and by grad()
    patches.replace(torch.autograd, "_engine_run_backward", _engine(torch.autograd.graph._engine_run_backward))

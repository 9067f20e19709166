"""The collectives of one process that ``torch.nn.parallel`` (DataParallel) calls in C++."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ipydevice.virtual import cards
from ipydevice.virtual.moving import send
from ipydevice.virtual.patches import Patches

Tensor = torch.Tensor


def _scatter(
    tensor: Tensor, devices: Sequence[int], chunk_sizes: Any = None, dim: int = 0, streams: Any = None
) -> tuple[Tensor, ...]:
    chunks = torch.split(tensor, list(chunk_sizes), dim) if chunk_sizes else tensor.chunk(len(devices), dim)
    return tuple(send(chunk, cards.resolve(device)) for chunk, device in zip(chunks, devices, strict=False))


def _gather(tensors: Sequence[Tensor], dim: int, destination: int | None) -> Tensor:
    where = cards.CPU if destination == -1 else cards.card(cards.index_of(destination))
    return torch.cat([send(tensor, where) for tensor in tensors], dim)


def _broadcast(tensor: Tensor, devices: Sequence[int]) -> list[Tensor]:
    return [send(tensor, cards.resolve(device)) for device in devices]


def _broadcast_coalesced(tensors: Sequence[Tensor], devices: Sequence[int], buffer_size: int) -> list[list[Tensor]]:
    return [[send(tensor, cards.resolve(device)) for tensor in tensors] for device in devices]


def _scatter_forward(ctx: Any, target_gpus: Any, chunk_sizes: Any, dim: int, input: Tensor) -> Any:
    """``Scatter.forward`` without its copy streams, which it asks for by ``torch.device(0)``."""
    ctx.dim = dim
    ctx.input_device = input.get_device() if input.device.type != "cpu" else -1
    return _scatter(input, [cards.index_of(card) for card in target_gpus], chunk_sizes, dim)


def _reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum, on one card, in the order given."""
    where = cards.card(cards.index_of(destination))
    total = inputs[0] if len(inputs) == 1 else send(inputs[0], where).clone()
    for tensor in inputs[1:]:
        total = total + send(tensor, where)
    return send(total, where)


def _reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 0
) -> tuple[Tensor, ...]:
    return tuple(_reduce_add(tensors, destination) for tensors in zip(*inputs, strict=True))


def install(patches: Patches) -> None:
    patches.replace(torch._C, "_scatter", _scatter)
    patches.replace(torch._C, "_gather", _gather)
    patches.replace(torch._C, "_broadcast", _broadcast)
    patches.replace(torch._C, "_broadcast_coalesced", _broadcast_coalesced)
    patches.replace(torch.nn.parallel._functions.Scatter, "forward", staticmethod(_scatter_forward))
    # PyTorch's own in-place sum relies on NCCL or on peer access
    patches.replace(torch.nn.parallel.comm, "reduce_add", _reduce_add)
    patches.replace(torch.nn.parallel.comm, "reduce_add_coalesced", _reduce_add_coalesced)

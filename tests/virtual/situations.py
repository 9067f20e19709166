"""82 situations in which devices meet.  Each is a function of (first card, second card): what a user would write.

The expected texts stand in situations.txt, recorded from PyTorch 2.13's own device checks on another accelerator, its
name rewritten.  Where CUDA's own text is known to differ, CUDA's stands there: invalid ordinals, and the wrapper of
bucketize (the symbols of the released libraries say ``wrapper_<key>_Tensor_bucketize``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

CPU = "cpu"
Situation = Callable[[str, str], Any]


def r(*shape: int, device: str = CPU, **options: Any) -> torch.Tensor:
    return torch.ones(*shape, device=device, **options)


def ids(*values: int, device: str = CPU) -> torch.Tensor:
    return torch.tensor(values, device=device)


def inplace_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x += y
    return x


def set_item(x: torch.Tensor, index: Any, value: Any) -> torch.Tensor:
    x[index] = value
    return x


class _BadBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient.cpu()


# The engine names the node: the class and "Backward"
_Bad = type("_Bad", (_BadBackward,), {})


def bad_backward(d: str, e: str) -> Any:
    x = r(3, device=d, requires_grad=True)
    _Bad.apply(x).sum().backward()


def assign_gradient(d: str, e: str) -> Any:
    x = r(3, device=d, requires_grad=True)
    x.grad = r(3)


def adam_after_move(d: str, e: str) -> Any:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(r(1, 3)).sum().backward()
    optimizer.step()
    model.to(d)
    optimizer.zero_grad()
    model(r(1, 3, device=d)).sum().backward()
    optimizer.step()


def data_parallel(d: str, e: str) -> Any:
    return nn.DataParallel(nn.Linear(3, 2).to(e), device_ids=[0, 1])(r(4, 3, device=d))


def attention_mask(d: str, e: str) -> Any:
    x = r(2, 3, 4, device=d)
    return nn.MultiheadAttention(4, 2, batch_first=True).to(d)(x, x, x, attn_mask=r(3, 3))


def heads(d: str, e: str) -> Any:
    x = r(2, 3, 4)
    return nn.MultiheadAttention(4, 2).to(d)(x, x, x)


SITUATIONS: dict[str, Situation] = {
    "add two devices": lambda d, e: r(3, device=e) + r(3, device=d),
    "add device + cpu": lambda d, e: r(3, device=d) + r(3),
    "add cpu + device": lambda d, e: r(3) + r(3, device=d),
    "add device + 0-dim cpu": lambda d, e: r(3, device=d) + torch.tensor(2.0),
    "add device0 + 0-dim device1": lambda d, e: r(3, device=d) + torch.tensor(2.0, device=e),
    "iadd device += cpu": lambda d, e: inplace_add(r(3, device=d), r(3)),
    "iadd cpu += device": lambda d, e: inplace_add(r(3), r(3, device=d)),
    "iadd cpu += 0-dim device": lambda d, e: inplace_add(r(3), torch.tensor(2.0, device=d)),
    "where(cpu mask, dev, dev)": lambda d, e: torch.where(r(3) > 0, r(3, device=d), r(3, device=d)),
    "maximum dev, cpu": lambda d, e: torch.maximum(r(3, device=d), r(3)),
    "compare dev == cpu": lambda d, e: r(3, device=d) == r(3),
    "matmul two devices": lambda d, e: r(2, 2, device=d) @ r(2, 2, device=e),
    "matmul dev @ cpu": lambda d, e: r(2, 2, device=d) @ r(2, 2),
    "matmul dev @ cpu vector": lambda d, e: r(2, 2, device=d) @ r(2),
    "bmm dev, cpu": lambda d, e: torch.bmm(r(1, 2, 2, device=d), r(1, 2, 2)),
    "einsum dev, cpu": lambda d, e: torch.einsum("ij,jk->ik", r(2, 2, device=d), r(2, 2)),
    "linear: model dev, x cpu": lambda d, e: nn.Linear(3, 2).to(d)(r(4, 3)),
    "linear: model cpu, x dev": lambda d, e: nn.Linear(3, 2)(r(4, 3, device=d)),
    "linear: model dev0, x dev1": lambda d, e: nn.Linear(3, 2).to(d)(r(4, 3, device=e)),
    "linear 3-d: model dev, x cpu": lambda d, e: nn.Linear(3, 2).to(d)(r(2, 4, 3)),
    "linear no bias: model dev, x cpu": lambda d, e: nn.Linear(3, 2, bias=False).to(d)(r(4, 3)),
    "conv2d: model dev, x cpu": lambda d, e: nn.Conv2d(3, 2, 3).to(d)(r(1, 3, 8, 8)),
    "conv2d: model cpu, x dev": lambda d, e: nn.Conv2d(3, 2, 3)(r(1, 3, 8, 8, device=d)),
    "conv2d: model dev0, x dev1": lambda d, e: nn.Conv2d(3, 2, 3).to(d)(r(1, 3, 8, 8, device=e)),
    "batchnorm: model dev, x cpu": lambda d, e: nn.BatchNorm1d(3).to(d)(r(4, 3)),
    "layernorm: model dev, x cpu": lambda d, e: nn.LayerNorm(3).to(d)(r(4, 3)),
    "layernorm: model cpu, x dev": lambda d, e: nn.LayerNorm(3)(r(4, 3, device=d)),
    "embedding: model dev, idx cpu": lambda d, e: nn.Embedding(5, 3).to(d)(ids(1, 2)),
    "embedding: model cpu, idx dev": lambda d, e: nn.Embedding(5, 3)(ids(1, 2, device=d)),
    "embedding: model dev0, idx dev1": lambda d, e: nn.Embedding(5, 3).to(d)(ids(1, 2, device=e)),
    "lstm: model dev, x cpu": lambda d, e: nn.LSTM(3, 4).to(d)(r(5, 2, 3)),
    "lstm: h0 cpu, x dev": lambda d, e: nn.LSTM(3, 4).to(d)(r(5, 2, 3, device=d), (r(1, 2, 4), r(1, 2, 4))),
    "mha: model dev, x cpu": heads,
    "mha: mask cpu": attention_mask,
    "sdpa: key cpu": lambda d, e: F.scaled_dot_product_attention(
        r(1, 2, 3, 4, device=d), r(1, 2, 3, 4), r(1, 2, 3, 4, device=d)
    ),
    "cross_entropy: target cpu": lambda d, e: F.cross_entropy(r(2, 3, device=d), ids(0, 1)),
    "cross_entropy: logits cpu, target dev": lambda d, e: F.cross_entropy(r(2, 3), ids(0, 1, device=d)),
    "cross_entropy: weight cpu": lambda d, e: F.cross_entropy(r(2, 3, device=d), ids(0, 1, device=d), weight=r(3)),
    "mse_loss: target cpu": lambda d, e: F.mse_loss(r(3, device=d), r(3)),
    "bce_logits: pos_weight cpu": lambda d, e: F.binary_cross_entropy_with_logits(
        r(2, 3, device=d), r(2, 3, device=d), pos_weight=r(3)
    ),
    "index: x cpu, idx dev": lambda d, e: r(3)[ids(0, 1, device=d)],
    "index: x dev, idx cpu": lambda d, e: r(3, device=d)[ids(0, 1)],
    "index: x dev0, idx dev1": lambda d, e: r(3, device=d)[ids(0, 1, device=e)],
    "mask: x cpu, mask dev": lambda d, e: r(3)[r(3, device=d) > 0],
    "mask: x dev, mask cpu": lambda d, e: r(3, device=d)[r(3) > 0],
    "setitem: x dev, idx cpu, value cpu": lambda d, e: set_item(r(3, device=d), ids(0, 1), r(2)),
    "setitem: x dev, slice, value cpu (copy)": lambda d, e: set_item(r(3, device=d), slice(0, 2), r(2)),
    "setitem: x dev, mask cpu, 0-dim value": lambda d, e: set_item(r(3, device=d), r(3) > 0, torch.tensor(2.0)),
    "masked_fill: mask cpu": lambda d, e: r(3, device=d).masked_fill(r(3) > 0, 0.0),
    "index_select: idx cpu": lambda d, e: torch.index_select(r(3, 2, device=d), 0, ids(0, 1)),
    "gather: idx cpu": lambda d, e: torch.gather(r(2, 2, device=d), 0, ids(0, 1).reshape(1, 2)),
    "scatter: src cpu": lambda d, e: r(2, 2, device=d).scatter_(0, ids(0, 1, device=d).reshape(1, 2), r(1, 2)),
    "cat with a stray cpu": lambda d, e: torch.cat([r(2, device=d), r(2, device=d), r(2)]),
    "cat cpu first, dev second": lambda d, e: torch.cat([r(2), r(2, device=d)]),
    "cat two devices": lambda d, e: torch.cat([r(2, device=d), r(2, device=e)]),
    "stack with a stray cpu": lambda d, e: torch.stack([r(2, device=d), r(2)]),
    "dot dev, cpu": lambda d, e: torch.dot(r(3, device=d), r(3)),
    "out= on cpu": lambda d, e: torch.add(r(3, device=d), r(3, device=d), out=torch.empty(3)),
    "matmul out= on cpu": lambda d, e: torch.mm(r(2, 2, device=d), r(2, 2, device=d), out=torch.empty(2, 2)),
    "addcmul value cpu": lambda d, e: torch.addcmul(r(3, device=d), r(3, device=d), r(3)),
    "clamp min tensor cpu": lambda d, e: torch.clamp(r(3, device=d), min=r(3)),
    "lerp weight cpu": lambda d, e: torch.lerp(r(3, device=d), r(3, device=d), r(3)),
    "equal dev, cpu": lambda d, e: torch.equal(r(3, device=d), r(3)),
    "allclose dev, cpu": lambda d, e: torch.allclose(r(3, device=d), r(3)),
    "bucketize boundaries cpu": lambda d, e: torch.bucketize(r(3, device=d), r(3)),
    "backward: gradient cpu": lambda d, e: (r(3, device=d, requires_grad=True) * 2).backward(r(3)),
    "assign .grad on cpu": assign_gradient,
    "custom backward returns cpu grad": bad_backward,
    "numpy() on device": lambda d, e: r(3, device=d).numpy(),
    "np.asarray on device": lambda d, e: np.asarray(r(3, device=d)),
    "numpy() requires grad": lambda d, e: r(3, device=d, requires_grad=True).numpy(),
    "invalid ordinal factory": lambda d, e: torch.zeros(3, device="cuda:7"),
    "invalid ordinal .to": lambda d, e: torch.zeros(3).to("cuda:7"),
    "generator device": lambda d, e: torch.randn(3, device=d, generator=torch.Generator()),
    "generator device 2": lambda d, e: torch.randn(3, generator=torch.Generator(d)),
    "normal_ with cpu generator": lambda d, e: torch.empty(3, device=d).normal_(generator=torch.Generator()),
    "new tensor from device list": lambda d, e: torch.tensor(
        [torch.tensor(1.0, device=d), torch.tensor(2.0, device=d)]
    ),
    "legacy tensor type": lambda d, e: torch.FloatTensor(r(3, device=d)),
    "Adam: model moved after first step": adam_after_move,
    "from_numpy + dev": lambda d, e: torch.from_numpy(np.ones(3, dtype=np.float32)) + r(3, device=d),
    "pin_memory on device tensor": lambda d, e: r(3, device=d).pin_memory(),
    "dataparallel wrong device": data_parallel,
}

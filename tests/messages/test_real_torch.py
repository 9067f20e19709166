"""What the installed PyTorch itself raises on this machine: CPU with meta, and accelerators that are not here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # the name that everybody gives it
from torch import nn

from ipydevice.messages import recognise


def cpu(*shape: int) -> torch.Tensor:
    return torch.ones(*shape)


def meta(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, device="meta")


INDEX = torch.zeros(2, dtype=torch.long)
META_INDEX = INDEX.to("meta")

MIXED: dict[str, Callable[[], Any]] = {
    "add": lambda: cpu(2) + meta(2),
    "linear": lambda: nn.Linear(2, 2)(meta(1, 2)),
    "lstm": lambda: nn.LSTM(2, 2, device="meta")(cpu(1, 1, 2)),
    "lstm state": lambda: nn.LSTM(2, 2)(cpu(1, 1, 2), (meta(1, 1, 2), meta(1, 1, 2))),
    "lengths": lambda: nn.utils.rnn.pack_padded_sequence(cpu(2, 2, 2), META_INDEX + 1),
    "attention": lambda: F.scaled_dot_product_attention(cpu(1, 1, 2, 2), meta(1, 1, 2, 2), cpu(1, 1, 2, 2)),
    "stft": lambda: torch.stft(cpu(100), 16, window=meta(16), return_complex=True),
    "grid_sample": lambda: F.grid_sample(cpu(1, 1, 2, 2), meta(1, 2, 2, 2)),
    "assigned gradient": lambda: setattr(cpu(2), "grad", meta(2)),
    "backward": lambda: (cpu(2).requires_grad_() * 2).backward(meta(2)),
    "pin_memory": lambda: meta(2).pin_memory(),
    "map_": lambda: cpu(2).map_(meta(2), lambda a, b: a),
    "tensor_split": lambda: torch.tensor_split(cpu(4), META_INDEX),
    "take_along_dim": lambda: torch.take_along_dim(cpu(2), META_INDEX, 0),
    "index_copy": lambda: cpu(2).index_copy(0, META_INDEX, cpu(2)),
    "index_add": lambda: cpu(2).index_add(0, META_INDEX, cpu(2)),
    "block_diag": lambda: torch.block_diag(cpu(2, 2), meta(2, 2)),
    "meshgrid": lambda: torch.meshgrid(cpu(2), meta(2), indexing="ij"),
    "quantile": lambda: torch.quantile(cpu(4), meta(1)),
    "cholesky_solve": lambda: torch.cholesky_solve(cpu(2, 2), meta(2, 2)),
    "inner": lambda: torch.inner(cpu(2), meta(2)),
    "equal": lambda: torch.equal(cpu(2), meta(2)),
    "cat": lambda: torch.cat([cpu(2), meta(2)]),
    "out=": lambda: torch.add(cpu(2), cpu(2), out=meta(2)),
    "svd out=": lambda: torch.linalg.svd(cpu(2, 2), out=(meta(2, 2), meta(2), meta(2, 2))),
    "set_": lambda: cpu(2).set_(meta(2)),
    "data": lambda: setattr(cpu(2), "data", meta(2)),
    "sparse": lambda: torch.sparse_csr_tensor(META_INDEX, INDEX, cpu(2)),
    "masked_fill": lambda: cpu(2).masked_fill(meta(2) > 0, 0),
    "mask": lambda: cpu(2)[meta(2) > 0],
    "assert_close": lambda: torch.testing.assert_close(cpu(2), meta(2)),
    "legacy constructor": lambda: torch.FloatTensor(meta(2)),
    "batch_norm": lambda: nn.BatchNorm1d(2)(meta(2, 2)),
    "cross_entropy": lambda: F.cross_entropy(cpu(2, 2), META_INDEX),
    "multi_dot": lambda: torch.linalg.multi_dot([cpu(2, 2), meta(2, 2), cpu(2, 2)]),
    "nested": lambda: torch.nested.nested_tensor([cpu(2), meta(2)], layout=torch.jagged),
    "vector": lambda: nn.utils.parameters_to_vector([cpu(2), meta(2)]),
    "foreach": lambda: torch._foreach_add([cpu(2)], [meta(2)]),
    "attention layer": lambda: nn.MultiheadAttention(2, 1)(cpu(1, 1, 2), meta(1, 1, 2), cpu(1, 1, 2)),
    "random state": lambda: torch.set_rng_state(meta(2).byte()),
}  # fmt: skip

NO_DATA: dict[str, Callable[[], Any]] = {
    "item": lambda: meta(1).item(),
    "bool": lambda: bool(meta(1)),
    "tolist": lambda: meta(2).tolist(),
    "cpu": lambda: meta(2).cpu(),
    "module": lambda: nn.Linear(2, 2, device="meta").to("cpu"),
    "nonzero": lambda: meta(2).nonzero(),
    "repeat_interleave": lambda: torch.repeat_interleave(META_INDEX),
    "unique": lambda: torch.unique(meta(2)),
    "dlpack": lambda: torch.from_dlpack(meta(2)),
    "generator": lambda: torch.Generator(device="meta"),
    "numpy": lambda: meta(2).numpy(),
}

AVAILABILITY: dict[str, Callable[[], Any]] = {
    "cuda()": lambda: cpu(2).cuda(),
    "to('cuda')": lambda: cpu(2).to("cuda"),
    "to('mps')": lambda: cpu(2).to("mps"),
    "to(0)": lambda: cpu(2).to(0),
    "zeros(mps)": lambda: torch.zeros(2, device="mps"),
    "zeros(xpu)": lambda: torch.zeros(2, device="xpu"),
    "zeros(hpu)": lambda: torch.zeros(2, device="hpu"),
    "device('gpu')": lambda: torch.device("gpu"),
    "device('cuda:x')": lambda: torch.device("cuda:x"),
    "device('')": lambda: torch.device(""),
    "generator": lambda: torch.Generator(device="cuda"),
    "synchronize": lambda: torch.cuda.synchronize(),
    "set_device": lambda: torch.cuda.set_device(0),
    "stream": lambda: torch.cuda.Stream(),
    "event": lambda: torch.cuda.Event().record(),
    "graph": lambda: torch.cuda.CUDAGraph(),
    "properties": lambda: torch.cuda.get_device_properties(0),
    "legacy type": lambda: torch.cuda.FloatTensor(2),
    "torch.hpu": lambda: torch.hpu,  # type: ignore[attr-defined]
}

OTHERS: dict[str, Callable[[], Any]] = {
    "shape": lambda: cpu(2, 3) @ cpu(2, 3),
    "size": lambda: cpu(2) + cpu(3),
    "dtype": lambda: nn.Conv1d(1, 1, 1)(cpu(1, 1, 2).double()),
    "lengths": lambda: nn.utils.rnn.pack_padded_sequence(cpu(2, 2, 2), torch.ones(2, 2, dtype=torch.long)),
    "index": lambda: cpu(2)[5],
    "label": lambda: F.cross_entropy(cpu(2, 2), INDEX + 5),
    "grad": lambda: cpu(2).backward(),
    "numpy": lambda: cpu(2).requires_grad_().numpy(),
    "signature": lambda: torch.zeros(2, devise="cpu"),  # type: ignore[call-overload]
    "type": lambda: torch.zeros("cuda"),  # type: ignore[call-overload]
    "attribute": lambda: nn.Linear(2, 2).device,
    "singular": lambda: torch.linalg.inv(torch.zeros(2, 2)),
    "state_dict": lambda: nn.Linear(2, 2).load_state_dict({"weight": cpu(3, 3)}),
    "embedding dtype": lambda: F.embedding(cpu(2), cpu(2, 2)),
}


def raised(call: Callable[[], Any]) -> Exception | None:
    """What it raises; versions differ in what they let pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except Exception as error:  # noqa: BLE001  # what it raises is the question
            return error
    return None


def accelerated() -> bool:
    return torch.cuda.is_available() or torch.backends.mps.is_available()


@pytest.mark.parametrize("name", MIXED)
def test_mixed_devices_are_recognised(name: str) -> None:
    error = raised(MIXED[name])
    if error is None:
        pytest.skip("this PyTorch lets it pass")
    mismatch = recognise(error)
    assert mismatch is not None, error
    assert mismatch.kind in ("placement", "meta")
    assert mismatch.confidence == "exact", error


@pytest.mark.parametrize("name", NO_DATA)
def test_tensors_without_data_are_recognised(name: str) -> None:
    error = raised(NO_DATA[name])
    assert error is not None
    mismatch = recognise(error)
    assert mismatch is not None, error
    assert (mismatch.kind, mismatch.confidence) == ("meta", "exact"), error


@pytest.mark.skipif(accelerated(), reason="an accelerator is here")
@pytest.mark.parametrize("name", AVAILABILITY)
def test_missing_accelerators_are_recognised(name: str) -> None:
    error = raised(AVAILABILITY[name])
    assert error is not None
    mismatch = recognise(error)
    assert mismatch is not None, error
    assert (mismatch.kind, mismatch.family, mismatch.confidence) == ("availability", "availability", "exact"), error


@pytest.mark.parametrize("name", OTHERS)
def test_other_errors_of_torch_are_none(name: str) -> None:
    error = raised(OTHERS[name])
    assert error is not None
    assert recognise(error) is None


def test_op_of_a_traced_mismatch_comes_from_the_exception() -> None:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        error = raised(lambda: torch.ones(2) + torch.ones(2, device="cuda"))
    assert error is not None
    mismatch = recognise(error)
    assert mismatch is not None
    assert (mismatch.family, mismatch.op, mismatch.devices) == ("faketensor", "add", ("cpu", "cuda:0"))

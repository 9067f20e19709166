"""One device, written in all the ways that messages write it."""

from __future__ import annotations

import pytest

from ipydevice.messages import devices, recognise


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("cuda:0", "cuda:0"), ("cuda", "cuda"), ("CUDA:1", "cuda:1"), ("CUDA", "cuda"), ("GPU", "cuda"), ("cpu", "cpu"),
        ("CPU", "cpu"), ("cpu:0", "cpu"), ("mps:0", "mps:0"), ("MPS", "mps"), ("Meta", "meta"), ("xpu:3", "xpu:3"),
        ("hpu", "hpu"), ("npu:7", "npu:7"), ("privateuseone:0", "privateuseone:0"), ("PrivateUse1", "privateuseone"),
        ("openreg:1", "openreg:1"), ("'cuda:0'", "cuda:0"), ('"cpu"', "cpu"), ("`mps`", "mps"), ("<cuda:0>", "cuda:0"),
        ("device(type='cuda')", "cuda"), ("device(type='cuda', index=0)", "cuda:0"),
        ("torch.device(type='cuda', index=0)", "cuda:0"), ("torch.device('cuda:1')", "cuda:1"),
        ('device(type="mps", index=0)', "mps:0"), ("device('cuda', 1)", "cuda:1"), ("SparseCUDA", "cuda"),
        ("SparseCsrCUDA", "cuda"), ("QuantizedCPU", "cpu"), ("cuda:0.", "cuda:0"), (" cuda:0 ", "cuda:0"),
    ],
)  # fmt: skip
def test_device_is_normalised(written: str, name: str) -> None:
    assert devices.normalise(written) == name


@pytest.mark.parametrize("written", ["", " ", "''", "..."])
def test_nothing_is_no_device(written: str) -> None:
    assert devices.normalise(written) is None


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("torch.FloatTensor", "cpu"), ("torch.cuda.FloatTensor", "cuda"), ("torch.cuda.sparse.FloatTensor", "cuda"),
        ("torch.sparse.FloatTensor", "cpu"), ("torch.BFloat16Tensor", "cpu"), ("torch.xpu.HalfTensor", "xpu"),
        ("torch.npu.FloatTensor", "npu"), ("torch.privateuseone.FloatTensor", "privateuseone"),
        ("MPSFloatType", "mps"), ("CUDABFloat16Type", "cuda"), ("CPUBFloat16Type", "cpu"), ("XPUHalfType", "xpu"),
        ("MetaFloatType", "meta"), ("SparseCUDAFloatType", "cuda"), ("QuantizedCPUQInt8Type", "cpu"),
        ("PrivateUse1FloatType", "privateuseone"), ("Variable[torch.cuda.FloatTensor]", "cuda"),
        ("Variable[CPUFloatType]", "cpu"), ("HPULongType", "hpu"), ("torch.Tensor", "cpu"),
        ("torch.cuda.Tensor", "cuda"),
    ],
)  # fmt: skip
def test_tensor_type_gives_a_device(written: str, name: str) -> None:
    assert devices.of_type(written) == name


@pytest.mark.parametrize("written", ["float", "double", "c10::Half", "torch.float32", "Long", "numpy.ndarray", ""])
def test_dtype_gives_none(written: str) -> None:
    assert devices.of_type(written) is None


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("cuda:0", "cuda:1", True), ("cuda:0", "cpu", True), ("cuda", "cpu", True), ("cuda", "cuda:1", False),
        ("cuda:0", "cuda:0", False), ("cpu", "cpu:0", False), ("mps", "mps:0", False), ("mps:0", "meta", True),
    ],
)  # fmt: skip
def test_devices_differ(one: str, other: str, differ: bool) -> None:
    assert devices.differ(one, other) is differ


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{device(type='cuda', index=0), device(type='cpu')}", ["cuda:0", "cpu"]),
        ("{'cpu', 'meta'}", ["cpu", "meta"]),
        (
            "[(torch.Size([4, 4]), device(type='cpu')), (torch.Size([4]), device(type='xpu', index=1))]",
            ["cpu", "xpu:1"],
        ),
        ("cuda:1, cuda:2", ["cuda:1", "cuda:2"]),
    ],
)
def test_devices_inside_a_list(text: str, names: list[str]) -> None:
    assert devices.inside(text) == names


@pytest.mark.parametrize(
    "accelerator", ["cuda:0", "mps:0", "xpu:1", "hpu:0", "npu:2", "privateuseone:0", "mlu:0", "my_chip:3", "'cuda:0'"]
)
@pytest.mark.parametrize(
    "template",
    [
        "Expected all tensors to be on the same device, but found at least two devices, {} and cpu!",
        "Expected all tensors to be on the same device, but got index is on cpu, different from other tensors on {} "
        "(when checking argument in method wrapper_NPU__index_select)",
        "indices should be either on cpu or on the same device as the indexed tensor ({})",
        "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        "Input and parameter tensors are not at the same device, found input tensor at cpu and parameter tensor at {}",
        "expected self and mask to be on the same device, but got mask on cpu and self on {}",
        "Expected query, key, and value to have the same device type, but got query.device: {} key.device: cpu and "
        "value.device: cpu instead.",
        "Function F returned an invalid gradient at index 0 - expected device {} but got cpu",
    ],
)
def test_any_back_end_will_do(template: str, accelerator: str) -> None:
    mismatch = recognise(RuntimeError(template.format(accelerator)))
    assert mismatch is not None
    assert mismatch.confidence == "exact"
    assert devices.normalise(accelerator) in mismatch.devices

"""What notebooks ask of torch.cuda, and the older ways of naming a place."""

from __future__ import annotations

import gc
import inspect
from typing import Any

import pytest
import torch
from torch import nn


def test_what_there_is(cards: Any) -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 2
    assert torch.cuda.get_device_name(1) == torch.cuda.get_device_name("cuda:0") == "Virtual GPU"
    assert torch.cuda.get_device_properties(0).total_memory > 0
    assert torch.cuda.get_device_capability() == (8, 0)
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.cuda.is_bf16_supported()
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.cuda.get_device_name(5)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.set_device(5)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.get_device_name("cpu")
    with pytest.raises(RuntimeError, match="Invalid device, must be cuda device"):
        torch.ones(1).cuda("cpu")


def test_the_current_card(cards: Any) -> None:
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert str(torch.ones(1).cuda().device) == str(torch.ones(1, device="cuda").device) == "cuda:1"
        with torch.cuda.device("cuda:0"):
            assert torch.cuda.current_device() == 0
    torch.cuda.set_device("cuda:1")
    assert str(torch.ones(1).to("cuda").device) == "cuda:1"
    torch.cuda.set_device(0)
    with torch.cuda.device_of(torch.ones(1, device="cuda:1")):
        assert torch.cuda.current_device() == 1


def test_ways_to_name_a_card(cards: Any) -> None:
    x = torch.ones(2)
    for device in (1, "cuda:1", torch.device("cuda", 1), torch.device("cuda:1")):
        assert (
            str(x.to(device).device)
            == str(x.cuda(device).device)
            == str(torch.zeros(1, device=device).device)
            == "cuda:1"
        )
    layer = nn.Linear(2, 2).cuda(1)
    assert str(layer.weight.device) == "cuda:1"
    assert layer.weight.get_device() == 1
    assert x.get_device() == -1
    assert layer.weight.is_cuda
    assert not layer.weight.is_cpu


def test_memory_follows_the_living(cards: Any) -> None:
    gc.collect()
    before = torch.cuda.memory_allocated("cuda:1")
    torch.cuda.reset_peak_memory_stats("cuda:1")
    x = torch.zeros(1024, 256, device="cuda:1")  # 1 MiB
    view = x[:10]
    assert torch.cuda.memory_allocated("cuda:1") - before == 1 << 20
    y = x * 2
    assert torch.cuda.memory_allocated("cuda:1") - before == 2 << 20
    del x, y
    assert torch.cuda.memory_allocated("cuda:1") - before == 1 << 20
    del view
    assert torch.cuda.memory_allocated("cuda:1") == before
    assert torch.cuda.max_memory_allocated("cuda:1") - before == 2 << 20
    z = torch.zeros(256, device="cuda:1", requires_grad=True)
    z.exp().sum().backward()
    assert torch.cuda.memory_allocated("cuda:1") - before == 2 * 1024  # the tensor and its gradient
    free, total = torch.cuda.mem_get_info("cuda:1")
    assert (
        total - free
        == torch.cuda.memory_allocated("cuda:1")
        == torch.cuda.memory_stats("cuda:1")["allocated_bytes.all.current"]
    )
    assert f"{torch.cuda.memory_allocated(1)} bytes" in torch.cuda.memory_summary(1)


def test_a_moved_model_counts_once(cards: Any) -> None:
    gc.collect()
    before = torch.cuda.memory_allocated()
    model = nn.Linear(128, 128, bias=False).cuda()
    assert torch.cuda.memory_allocated() - before == 128 * 128 * 4
    model.cpu()
    assert torch.cuda.memory_allocated() == before


def test_streams_and_events(cards: Any) -> None:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.ones(2, device="cuda") * 2
    torch.cuda.current_stream().wait_stream(stream)
    x.record_stream(stream)
    end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0
    torch.cuda.empty_cache()


def test_a_number_is_a_card_for_modules_too(cards: Any) -> None:
    net = torch.nn.Linear(2, 2)
    assert {p.device for p in net.to(1).parameters()} == {torch.device("cuda:1")}
    assert {p.device for p in net.to(device=0, dtype=torch.float64).parameters()} == {torch.device("cuda:0")}
    assert net.to(torch.cuda.current_device()).weight.dtype == torch.float64
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    assert packed.to(1).data.device == torch.device("cuda:1")
    with pytest.raises(Exception, match="invalid device ordinal"):
        net.to(7)


def test_streams_of_any_accelerator(cards: Any) -> None:
    stream = torch.Stream("cuda:1")
    event = torch.Event("cuda:1", enable_timing=True)
    with stream:
        event.record()
    stream.wait_event(event)
    assert stream.device == event.device == torch.device("cuda:1")
    assert event.query()


def test_a_data_parallel_process_copies_its_inputs(cards: Any) -> None:
    """On a stream of its own, from another card (torch/distributed/utils.py)."""
    from torch import distributed

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        net = torch.nn.Linear(2, 2).to("cuda:1")
        wrapped = torch.nn.parallel.DistributedDataParallel(net, device_ids=[1])
        assert wrapped(torch.ones(3, 2, device="cuda:0")).device == torch.device("cuda:1")
    finally:
        distributed.destroy_process_group()


def test_one_random_stream(cards: Any) -> None:
    torch.manual_seed(5)
    a = torch.rand(3, device="cuda")
    torch.cuda.manual_seed_all(5)
    b = torch.rand(3, device="cuda:1")
    assert torch.equal(a.cpu(), b.cpu())
    state = torch.cuda.get_rng_state()
    c = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(c, torch.rand(3, device="cuda"))
    with torch.random.fork_rng():
        torch.rand(10, device="cuda")
    assert torch.cuda.initial_seed() == 5


def test_generators(cards: Any) -> None:
    g = torch.Generator(device="cuda:1")
    assert str(g.device) == "cuda:1"
    assert isinstance(g, torch.Generator)
    assert isinstance(torch.default_generator, torch.Generator)
    assert torch.Generator().device.type == "cpu"
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        torch.randperm(5, generator=g)
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        torch.multinomial(torch.ones(3, device="cuda"), 1, generator=torch.Generator())
    with pytest.raises(RuntimeError, match="generator"):
        list(torch.utils.data.DataLoader([1, 2, 3], shuffle=True, generator=g))


def test_splitting_data_under_a_default_device(cards: Any) -> None:
    split = torch.utils.data.random_split
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        split([1, 2, 3], [1, 2], generator=torch.Generator("cuda"))
    with torch.device("cuda"), pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator"):
        split([1, 2, 3], [1, 2])
    assert len(split([1, 2, 3], [1, 2])[1]) == 2


def test_markers_and_profiles(cards: Any) -> None:
    with torch.cuda.nvtx.range("step"):
        torch.cuda.nvtx.mark("here")
    torch.cuda.set_per_process_memory_fraction(0.5)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")
    assert any(event.key == "aten::mm" for event in profile.key_averages())


def test_a_python_function_for_each_element(cards: Any) -> None:
    with pytest.raises(TypeError, match="apply_ is only implemented on CPU tensors"):
        torch.ones(2, device="cuda").apply_(lambda value: value)
    assert torch.ones(2).apply_(lambda value: value + 1).sum() == 4


def test_default_device(cards: Any) -> None:
    torch.set_default_device("cuda:1")
    try:
        assert str(torch.ones(1).device) == str(torch.get_default_device()) == "cuda:1"
        assert str(nn.Linear(1, 1).weight.device) == "cuda:1"
        assert torch.zeros(1, device="cpu").device.type == "cpu"
    finally:
        torch.set_default_device(None)
    assert torch.ones(1).device.type == "cpu"


def test_legacy_type_names(cards: Any) -> None:
    x = torch.ones(2, device="cuda:1")
    assert x.type() == "torch.cuda.FloatTensor"
    assert torch.ones(2).long().type() == "torch.LongTensor"
    assert str(torch.ones(2).type(torch.cuda.FloatTensor).device) == "cuda:0"
    assert str(torch.ones(2).type("torch.cuda.LongTensor").device) == "cuda:0"
    assert x.type(torch.FloatTensor).device.type == "cpu"
    assert str(x.type(torch.cuda.DoubleTensor).device) == "cuda:1"
    assert x.type(torch.int64).dtype is torch.int64
    assert isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x, torch.FloatTensor)
    assert isinstance(torch.ones(1), torch.FloatTensor)
    assert str(torch.cuda.FloatTensor([1.0, 2.0]).device) == "cuda:0"
    assert torch.cuda.LongTensor(2, 3).shape == (2, 3)
    assert str(x.new(2, 3).device) == str(x.new([1.0]).device) == "cuda:1"
    assert torch.FloatTensor([1.0]).device.type == "cpu"


@pytest.mark.parametrize("make", [lambda: torch.FloatTensor(3).zero_(), lambda: torch.Tensor(3).zero_()])
def test_legacy_constructors_make_host_tensors(cards: Any, make: Any) -> None:
    with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
        make() + torch.ones(3, device="cuda")


def test_autocast_says_what_cuda_says(cards: Any) -> None:
    x = torch.ones(2, 2, device="cuda")
    with torch.autocast("cuda"):
        assert torch.is_autocast_enabled("cuda")
        assert (x @ x).dtype is torch.float16
        with torch.autocast("cuda", enabled=False):
            assert (x @ x).dtype is torch.float32
    assert not torch.is_autocast_enabled("cuda")
    assert not torch.is_autocast_enabled("cpu")
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):  # the older name
        assert (x @ x).dtype is torch.bfloat16


def test_tensors_print_their_card(cards: Any) -> None:
    assert repr(torch.ones(2, device="cuda:1")) == "tensor([1., 1.], device='cuda:1')"
    assert repr(torch.ones(2)) == "tensor([1., 1.])"
    assert "grad_fn=<ToCopyBackward0>" in repr(torch.ones(1, requires_grad=True).to("cuda"))
    with torch.device("cuda"):
        assert "device='cuda:0'" in repr(nn.Parameter(torch.ones(1)))


def test_pinning(cards: Any) -> None:
    x = torch.ones(3).pin_memory()
    assert x.is_pinned()
    assert not torch.ones(3).is_pinned()
    assert torch.zeros(3, pin_memory=True).is_pinned()
    assert str(x.to("cuda", non_blocking=True).device) == "cuda:0"


def test_packed_lengths_belong_on_the_host(cards: Any) -> None:
    x = torch.ones(2, 3, 4, device="cuda")
    with pytest.raises(
        RuntimeError, match="'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"
    ):
        nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 2], device="cuda"), batch_first=True)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 2]), batch_first=True)
    assert str(packed.data.device) == "cuda:0"
    assert packed.batch_sizes.device.type == "cpu"
    assert packed.to("cpu").data.device.type == "cpu"


def test_convolutions_on_the_host_name_both_types(cards: Any) -> None:
    with pytest.raises(
        RuntimeError,
        match=r"^Input type \(torch.FloatTensor\) and weight type \(torch.cuda.FloatTensor\) should be the same or "
        "input should be a MKLDNN tensor and weight is a dense tensor$",
    ):
        nn.Conv2d(3, 2, 3).cuda()(torch.ones(4, 3, 8, 8))
    with pytest.raises(RuntimeError, match=r"bias type \(torch.FloatTensor\) should be the same$"):
        torch.nn.functional.conv1d(
            torch.ones(1, 2, 5, device="cuda"), torch.ones(3, 2, 2, device="cuda"), torch.ones(3)
        )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda x: torch.stft(x, 8, window=torch.ones(8), return_complex=True),
            "stft input and window must be",
        ),
        (lambda x: nn.LSTMCell(4, 3)(x.view(-1, 4)), "mat2 is on cpu, different from other tensors on cuda:0"),
        (
            lambda x: torch.nn.functional.grid_sample(x.view(1, 1, 4, 4), torch.zeros(1, 2, 2, 2), align_corners=False),
            r"grid_sampler\(\): expected input and grid to be on same device, but input is on cuda:0 and grid is on",
        ),
        (
            lambda x: torch.sparse.mm(torch.eye(16).to_sparse().cuda(), torch.ones(16, 1)),
            "mat1 is on cuda:0, different from other tensors on cpu .*wrapper_SparseCUDA__addmm",
        ),
        (
            lambda x: nn.BatchNorm2d(1)(x.view(1, 1, 4, 4)),
            "weight is on cpu, different from other tensors on cuda:0 .*wrapper_CUDA__cudnn_batch_norm",
        ),
        (
            lambda x: torch.nn.functional.conv1d(x.view(1, 1, 16).bfloat16(), torch.ones(1, 1, 2).bfloat16()),
            r"Input type \(CUDABFloat16Type\) and weight type \(CPUBFloat16Type\) should be the same",
        ),
        (
            lambda x: nn.ConvTranspose1d(1, 1, 2).to("cuda:1")(x.view(1, 1, 16)),
            "weight is on cuda:1, different from other tensors on cuda:0 .*wrapper_CUDA__cudnn_convolution_transpose",
        ),
        (lambda x: x.view(4, 4).mv(torch.ones(4)), "mat is on cuda:0, different from other tensors on cpu"),
        (lambda x: x.take(torch.tensor([0])), r"take\(\): self, index and out expected to be in the same device"),
        (lambda x: torch.tensor_split(x, torch.tensor([1], device="cuda")), "to be on cpu, but it's on cuda:0"),
        (lambda x: torch.addcmul(x, torch.tensor(1.0), torch.tensor(2.0)), "Trying to pass too many CPU scalars"),
        (
            lambda x: torch.block_diag(x, torch.ones(1)),
            "Input tensors must all be on the same device|input tensors must all",
        ),
        (
            lambda x: torch.meshgrid(x, torch.ones(2), indexing="ij"),
            "meshgrid expects all tensors to have the same device",
        ),
        (lambda x: torch.quantile(x, torch.tensor([0.5, 0.6])), "q tensor must be on the same device as the input"),
        (lambda x: torch.nn.utils.parameters_to_vector([x, torch.ones(1)]), "different devices|same device"),
        (lambda x: x.unsqueeze(0).masked_fill(torch.ones(16) > 0, 1), "got mask on cpu and self on cuda:0"),
    ],
)
def test_more_words(cards: Any, call: Any, words: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match=words):
        call(torch.ones(16, device="cuda"))


def test_signatures_stay_readable(cards: Any) -> None:
    assert torch.Tensor.to.__name__ == "to"
    assert torch.nn.functional.scaled_dot_product_attention.__doc__
    assert list(inspect.signature(torch.cuda.memory_allocated).parameters) == ["device"]

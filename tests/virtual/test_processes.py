"""Threads, worker processes, several cards in one model, and what is refused."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


class OnCard(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> torch.Tensor:
        return torch.full((2,), float(i), device="cuda")


def test_threads_check_too(cards: Any) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert str(pool.submit(lambda: (torch.ones(2, device="cuda:1") * 2).device).result()) == "cuda:1"
        with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
            pool.submit(lambda: torch.ones(2, device="cuda") + torch.ones(2)).result()


def test_threads_with_a_run_of_their_own(cards: Any) -> None:
    class Own(threading.Thread):
        found = ""

        def run(self) -> None:
            self.found = str((torch.ones(2, device="cuda:1") * 2).device)

    thread = Own()
    thread.start()
    thread.join()
    assert thread.found == "cuda:1"


def test_each_thread_has_its_current_card(cards: Any) -> None:
    seen: list[int] = []
    torch.cuda.set_device(1)
    thread = threading.Thread(target=lambda: seen.append(torch.cuda.current_device()))
    thread.start()
    thread.join()
    torch.cuda.set_device(0)
    assert seen == [0]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_load_on_the_host(cards: Any) -> None:
    data = TensorDataset(torch.arange(8.0).reshape(4, 2), torch.arange(4))
    torch.ones(1, device="cuda")
    seen = []
    for x, y in DataLoader(data, batch_size=2, num_workers=2, pin_memory=True):
        assert x.is_pinned()
        assert x.device.type == "cpu"
        seen.append((x.cuda(non_blocking=True) * y.cuda()[:, None]).cpu())
    assert torch.cat(seen).sum() == sum(i * (4 * i + 1) for i in range(4))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_may_not_touch_a_card(cards: Any) -> None:
    torch.ones(1, device="cuda")
    with pytest.raises(
        RuntimeError, match=r"Caught RuntimeError in DataLoader worker process 0(.|\n)*Cannot re-initialize CUDA"
    ):
        list(DataLoader(OnCard(), num_workers=1))


def test_pinning_what_is_on_a_card(cards: Any) -> None:
    with pytest.raises(RuntimeError, match=r"cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"):
        list(DataLoader(OnCard(), pin_memory=True))


def test_data_parallel_equals_one_card(cards: Any) -> None:
    def train(wrap: Any) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).cuda()
        wrapped = wrap(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        found = []
        for _ in range(3):
            loss = wrapped(torch.rand(6, 4, device="cuda")).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.detach().cpu())
        return found

    for several, one in zip(train(nn.DataParallel), train(lambda model: model), strict=True):
        torch.testing.assert_close(several, one)


def test_data_parallel_shows_each_replica_its_card(cards: Any) -> None:
    seen: list[tuple[str, str]] = []

    class Spy(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append((str(x.device), str(self.weight.device)))
            return super().forward(x)

    out = nn.DataParallel(Spy(2, 2).cuda())(torch.ones(4, 2))
    assert str(out.device) == "cuda:0"
    assert sorted(seen) == [("cuda:0", "cuda:0"), ("cuda:1", "cuda:1")]


def test_data_parallel_reports_the_replica(cards: Any) -> None:
    class Stray(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.shift = torch.ones(2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x) + self.shift

    with pytest.raises(RuntimeError, match=r"Caught RuntimeError in replica 0 on device 0") as caught:
        nn.DataParallel(Stray().cuda())(torch.ones(4, 2))
    assert "Original Traceback" in str(caught.value)
    assert "ipydevice" not in str(caught.value)


def test_model_moved_in_pieces(cards: Any) -> None:
    model = nn.Sequential(nn.Linear(2, 2).to("cuda:0"), nn.Linear(2, 2).to("cuda:1"))
    with pytest.raises(RuntimeError, match="mat1 is on cuda:0, different from other tensors on cuda:1"):
        model(torch.ones(1, 2, device="cuda:0"))


def test_compile_runs_eagerly_with_one_warning(cards: Any) -> None:
    from ipydevice.virtual import unsupported

    unsupported._warned.clear()
    with pytest.warns(UserWarning, match="torch.compile runs this code eagerly"):
        fast = torch.compile(lambda x: x + torch.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = torch.compile(nn.Linear(2, 2).cuda(), mode="max-autotune")

        @torch.compile(fullgraph=True)
        def double(x: torch.Tensor) -> torch.Tensor:
            return x * 2

    assert model(torch.ones(1, 2, device="cuda")).is_cuda
    assert double(torch.ones(1, device="cuda")) == 2
    with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
        fast(torch.ones(2, device="cuda"))
    nn.Linear(2, 2).compile()


def test_what_was_compiled_before_runs_eagerly_too() -> None:
    from ipydevice.virtual import virtual_gpus

    shift = torch.ones(2)
    fast = torch.compile(lambda x: x + shift, backend="eager")
    assert fast(torch.ones(2)).sum() == 4
    with virtual_gpus(1), pytest.raises(RuntimeError, match="cuda:0 and cpu!$"):
        fast(torch.ones(2, device="cuda"))
    assert fast(torch.ones(2)).sum() == 4


@pytest.mark.parametrize(
    ("call", "kind", "way_out"),
    [
        (lambda x: torch.jit.trace(lambda y: y + 1, x), RuntimeError, "torch.jit.script works"),
        (lambda x: torch.utils.dlpack.to_dlpack(x), BufferError, r"tensor\.cpu\(\)"),
        (lambda x: x.__dlpack__(), BufferError, r"tensor\.cpu\(\)"),
        (lambda x: x.__cuda_array_interface__, AttributeError, r"tensor\.cpu\(\)"),
        (lambda x: torch.distributed.init_process_group("nccl", rank=0, world_size=1), RuntimeError, "backend='gloo'"),
        (lambda x: torch.cuda.CUDAGraph(), RuntimeError, "Call the function directly"),
        (lambda x: x.untyped_storage()._share_cuda_(), RuntimeError, r"tensor\.cpu\(\)"),
    ],
)
def test_refusals_name_the_way_out(cards: Any, call: Any, kind: Any, way_out: str) -> None:
    with pytest.raises(kind, match=way_out):
        call(torch.ones(2, device="cuda"))
    assert torch.from_dlpack(torch.ones(2)).sum() == 2


def test_scripts_run(cards: Any) -> None:
    @torch.jit.script
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x @ y + torch.zeros_like(x)

    x = torch.ones(2, 2, device="cuda")
    assert f(x, x).is_cuda
    with pytest.raises(RuntimeError, match="TorchScript interpreter"):  # which loses the words of our error
        f(x, x.cpu())


def test_a_scripted_module_says_what_its_code_was_refused(cards: Any) -> None:
    class Shift(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = torch.ones(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.by

    scripted = torch.jit.freeze(torch.jit.script(Shift().eval()))
    assert torch.equal(scripted(torch.ones(3)), torch.full((3,), 2.0))
    with pytest.raises(RuntimeError, match="(?s)TorchScript interpreter.*RuntimeError: Expected all tensors to be on"):
        scripted.to("cuda")(torch.ones(3, device="cuda"))
    with pytest.raises(RuntimeError, match="(?s)size of tensor a"):  # other errors keep their own
        scripted(torch.ones(4))

"""Rows of every kind of thing: where it is, how many bytes, and what its note says."""

from __future__ import annotations

import collections
import concurrent.futures
import functools
import itertools
import queue
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from ipydevice.diagnosis import Row
from ipydevice.listing import list_namespace, select
from ipydevice.virtual import virtual_gpus


def row(thing: Any) -> Row:
    (found,) = list_namespace({"thing": thing}).rows
    return found


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.empty(3, device="cuda:1")


def stepped() -> torch.optim.Optimizer:
    p = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([p])
    p.sum().backward()
    optimizer.step()
    return optimizer


def scaled() -> torch.amp.GradScaler:
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(1))
    return scaler


def mapped() -> nn.Module:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net.hf_device_map = {"0": 0, "1": "cpu"}  # type: ignore[assignment]
    return net


def hooked() -> nn.Module:
    net = nn.Linear(2, 2)
    net._hf_hook = object()  # type: ignore[assignment]
    return net


class Encoding(collections.UserDict):  # type: ignore[type-arg]
    """As the BatchEncoding of transformers keeps its data."""


class Output(collections.OrderedDict):  # type: ignore[type-arg]
    """As the ModelOutput of transformers keeps its values: as items and as attributes."""

    def __init__(self, **values: Any) -> None:
        super().__init__(values)
        self.__dict__.update(values)


class Store:
    def __init__(self, mapping: dict[str, Any]) -> None:
        self.__dict__["_mapping"] = mapping


class Graph:
    """As the Data of PyTorch Geometric keeps its tensors; attributes are answered by ``__getattr__``."""

    def __init__(self, **values: Any) -> None:
        self.__dict__["_store"] = Store(values)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")


class Tensors(Mapping):  # type: ignore[type-arg]
    """As tensordict's TensorDict keeps its tensors."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._tensordict = values

    def __getitem__(self, key: str) -> Any:
        raise AssertionError

    __iter__ = __len__ = __getitem__  # type: ignore[assignment]


class Image(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("asked")


class Pair(collections.namedtuple("Pair", "a b")):
    __slots__ = ()


ONE, TWO = torch.ones(3), torch.ones(3)


def started() -> Iterator[int]:
    def numbers() -> Iterator[int]:
        held = torch.ones(3)
        yield len(held)

    generator = numbers()
    next(generator)
    return generator


def filled(line: Any) -> Any:
    line.put(ONE)
    return line


def cached(size: int | None) -> Any:
    made = functools.lru_cache(size)(torch.ones)
    made(3)
    return made


def done() -> Any:
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_result(ONE)
    return future


def caught() -> BaseException:
    """What a person keeps with ``except ValueError as error: kept = error``, and its frames with it."""

    def forward(hidden: torch.Tensor) -> None:
        raise ValueError(hidden.sum())

    try:
        forward(torch.ones(3))
    except ValueError as error:
        error.args = (ONE,)
        return error
    raise AssertionError


KINDS: dict[str, tuple[Callable[[], Any], tuple[str, str, int | None, str]]] = {
    "dense": (lambda: torch.ones(3), ("tensor", "cpu", 12, "")),
    "complex": (lambda: torch.ones(3, dtype=torch.complex64), ("tensor", "cpu", 24, "")),
    "sparse": (lambda: torch.eye(3).to_sparse(), ("tensor", "cpu", 60, "sparse_coo")),
    "sparse rows": (lambda: torch.eye(3).to_sparse_csr(), ("tensor", "cpu", 68, "sparse_csr")),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(3)]), ("tensor", "cpu", 12, "nested")),
    "jagged": (
        lambda: torch.nested.nested_tensor([torch.ones(3)], layout=torch.jagged),
        ("tensor", "cpu", 28, "NestedTensor, jagged"),
    ),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.qint8), ("tensor", "cpu", 3, "")),
    "meta": (lambda: torch.ones(3, device="meta"), ("tensor", "meta", 0, "")),
    "fake": (fake, ("tensor", "cuda:1", 0, "FakeTensor")),
    "of a class of the user's": (lambda: torch.ones(3).as_subclass(Image), ("tensor", "cpu", 12, "Image")),
    "parameter": (lambda: nn.Parameter(torch.ones(3)), ("parameter", "cpu", 12, "")),
    "module": (lambda: nn.Linear(2, 2), ("module", "cpu", 24, "2 tensors")),
    "script": (lambda: torch.jit.script(nn.Linear(2, 2)), ("module", "cpu", 24, "2 tensors, ScriptModule")),
    "compiled": (lambda: torch.compile(nn.Linear(2, 2)), ("module", "cpu", 24, "2 tensors, compiled")),
    "traced by fx": (lambda: torch.fx.symbolic_trace(nn.Linear(2, 2)), ("module", "cpu", 24, "2 tensors")),
    "data parallel": (lambda: nn.DataParallel(nn.Linear(2, 2)), ("module", "cpu", 24, "2 tensors, DataParallel")),
    "device map": (mapped, ("module", "cpu", 48, "4 tensors, hf_device_map of 2 parts on 0, cpu")),
    "accelerate hook": (hooked, ("module", "cpu", 24, "2 tensors, accelerate hook")),
    "averaged": (
        lambda: torch.optim.swa_utils.AveragedModel(nn.Linear(2, 2)),
        ("module", "cpu", 32, "3 tensors"),
    ),
    "optimizer": (stepped, ("optimizer", "cpu", 36, "3 tensors")),
    "scheduler": (lambda: torch.optim.lr_scheduler.StepLR(stepped(), 1), ("scheduler", "cpu", 36, "")),
    "plateau": (lambda: torch.optim.lr_scheduler.ReduceLROnPlateau(stepped()), ("scheduler", "cpu", 36, "")),
    "scaler": (scaled, ("scaler", "cpu", 8, "")),
    "unused scaler": (lambda: torch.amp.GradScaler("cpu"), ("scaler", "", 0, "")),
    "loader": (
        lambda: torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(3)), pin_memory=True),
        ("loader", "cpu", 12, "1 tensor, pin_memory=True"),
    ),
    "subset": (
        lambda: torch.utils.data.Subset(torch.utils.data.TensorDataset(torch.ones(3)), [0]),
        ("dataset", "cpu", 12, "1 tensor"),
    ),
    "generator": (torch.Generator, ("generator", "cpu", 0, "")),
    "stream": (lambda: torch.Stream(device="cpu"), ("stream", "cpu", 0, "")),
    "event": (lambda: torch.Event("cpu"), ("event", "cpu", 0, "")),
    "storage": (lambda: torch.ones(3).untyped_storage(), ("storage", "cpu", 12, "")),
    "typed storage": (lambda: torch.ones(3).storage(), ("storage", "cpu", 12, "")),
    "packed": (lambda: nn.utils.rnn.pack_sequence([torch.ones(2, 1)]), ("packed sequence", "cpu", 24, "")),
    "list": (lambda: [[(ONE,)], {"a": {TWO}}], ("container", "cpu", 24, "2 tensors")),
    "deque": (lambda: collections.deque([ONE]), ("container", "cpu", 12, "1 tensor")),
    "named tuple": (lambda: Pair(ONE, TWO), ("container", "cpu", 24, "2 tensors")),
    "default dict": (lambda: collections.defaultdict(list, a=[ONE]), ("container", "cpu", 12, "1 tensor")),
    "chain of maps": (lambda: collections.ChainMap({"a": ONE}), ("object", "cpu", 12, "1 tensor")),
    "proxy of a map": (lambda: types.MappingProxyType({"a": ONE}), ("object", "cpu", 12, "1 tensor")),
    "namespace": (lambda: types.SimpleNamespace(a=ONE), ("object", "cpu", 12, "1 tensor")),
    "batch encoding": (lambda: Encoding(ids=ONE), ("container", "cpu", 12, "1 tensor")),
    "model output": (lambda: Output(logits=ONE), ("container", "cpu", 12, "1 tensor")),
    "graph": (lambda: Graph(x=ONE, edge_index=TWO), ("object", "cpu", 24, "2 tensors")),
    "tensor dict": (lambda: Tensors({"a": ONE, "b": Tensors({"c": TWO})}), ("object", "cpu", 24, "2 tensors")),
    "distribution": (lambda: torch.distributions.Normal(ONE, TWO), ("object", "cpu", 24, "2 tensors")),
    "iterator": (lambda: iter([ONE]), ("object", "cpu", 12, "1 tensor")),
    "iterator of an iterator": (lambda: enumerate(zip([ONE], [TWO], strict=True)), ("object", "cpu", 24, "2 tensors")),
    "cycle": (lambda: itertools.cycle((ONE,)), ("object", "cpu", 12, "1 tensor")),
    "generator of Python's": (lambda: started(), ("object", "cpu", 12, "1 tensor")),
    "generator expression": (lambda: (x for x in [ONE]), ("object", "cpu", 12, "1 tensor")),
    "view of a dictionary": (lambda: {"a": ONE}.values(), ("object", "cpu", 12, "1 tensor")),
    "queue": (lambda: filled(queue.Queue()), ("object", "cpu", 12, "1 tensor")),
    "simple queue": (lambda: filled(queue.SimpleQueue()), ("object", "cpu", 12, "1 tensor")),
    "keys": (lambda: {ONE: "a", (TWO, 1): 3}, ("container", "cpu", 24, "2 tensors")),
    "cache": (lambda: cached(None), ("function", "cpu", 12, "1 tensor")),
    "bounded cache": (lambda: cached(2), ("function", "cpu", 12, "1 tensor")),
    "future": (lambda: done(), ("object", "cpu", 12, "1 tensor")),
    "exception": (lambda: ValueError("x", [ONE]), ("object", "cpu", 12, "1 tensor")),
    "kept exception": (lambda: caught(), ("object", "cpu", 24, "2 tensors")),
    "function": (lambda: lambda x=ONE: x, ("function", "cpu", 12, "1 tensor")),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_row(name: str) -> None:
    make, wanted = KINDS[name]
    found = row(make())
    assert (found.kind, found.device, found.bytes, found.note) == wanted
    assert found.odd == ""


def test_what_a_card_has_beside_tensors() -> None:
    with virtual_gpus(2):
        tensor = torch.ones(3, device="cuda:1")
        scaler = torch.amp.GradScaler("cuda")
        scaler.scale(torch.ones(1).cuda())
        space = {
            "stream": torch.cuda.Stream(device=1), "generator": torch.Generator("cuda:1"), "scaler": scaler,
            "tensor": tensor, "storage": tensor.untyped_storage(), "event": torch.cuda.Event(),
            "recorded": torch.cuda.Stream(1).record_event(), "recorded here": torch.cuda.Event(enable_timing=True),
        }  # fmt: skip
        space["recorded here"].record()
        found = list_namespace(space)
    assert [(one.name, one.kind, one.device) for one in found.rows] == [
        ("stream", "stream", "cuda:1"), ("generator", "generator", "cuda:1"), ("scaler", "scaler", "cuda:0"),
        ("tensor", "tensor", "cuda:1"), ("storage", "storage", "cuda:1"), ("event", "event", ""),
        ("recorded", "event", "cuda:1"), ("recorded here", "event", "cuda:0"),
    ]  # fmt: skip
    with virtual_gpus(2):  # and torch's own, of the same names, afterwards
        told = list_namespace({"stream": torch.Stream("cuda:1"), "event": torch.Event("cuda:1")}).rows
    assert [(one.kind, one.device) for one in told] == [("stream", "cuda:1"), ("event", "cuda:1")]
    told = list_namespace({"stream": torch.Stream("cpu"), "event": torch.Event("cpu")}).rows
    assert [(one.kind, one.device) for one in told] == [("stream", "cpu"), ("event", "cpu")]
    assert [one.note for one in found.rows if one.kind == "event"] == ["not recorded yet", "", ""]
    assert found.bytes_by_device == {"cuda:0": 8, "cuda:1": 12}  # the tensor and its storage are one memory


@pytest.fixture
def group() -> Iterator[Any]:
    distributed = pytest.importorskip("torch.distributed")
    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield distributed
    distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
def test_modules_of_many_processes(group: Any) -> None:
    parallel = row(nn.parallel.DistributedDataParallel(nn.Linear(2, 2)))
    assert (parallel.device, parallel.bytes, parallel.note) == ("cpu", 24, "2 tensors, DistributedDataParallel")
    from torch.distributed.device_mesh import init_device_mesh

    fsdp = pytest.importorskip("torch.distributed.fsdp")
    if not hasattr(fsdp, "fully_shard"):  # public since 2.6
        pytest.skip("this torch has no fully_shard")
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    fsdp.fully_shard(net, mesh=init_device_mesh("cpu", (1,)))
    sharded = row(net)
    assert (sharded.device, sharded.bytes, sharded.note) == ("cpu", 48, "4 tensors, FSDP")
    names = [one.name for one in select({"net": net}, verbose=True).rows]
    assert names == ["net", "net[0]", "net[0].weight", "net[0].bias", "net[1]", "net[1].weight", "net[1].bias"]
    note = next(one.note for one in select({"net": net}, verbose=True).rows if one.name == "net[0].weight")
    assert note == "DTensor"


def test_the_real_ones_where_they_are_installed() -> None:
    tensordict = pytest.importorskip("tensordict")
    held = tensordict.TensorDict({"a": torch.ones(3), "b": {"c": torch.ones(3)}}, [3])
    assert (row(held).kind, row(held).bytes, row(held).note) == ("object", 24, "2 tensors")


def test_graphs_of_pyg_where_it_is_installed() -> None:
    data = pytest.importorskip("torch_geometric.data")
    held = data.Data(x=torch.ones(3, 2), edge_index=torch.zeros(2, 4, dtype=torch.long))
    assert (row(held).bytes, row(held).note) == (88, "2 tensors")

"""Where single objects live, on torch's own objects of every kind."""

from __future__ import annotations

import collections
import dataclasses
import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from ipydevice import placement


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.empty(3, 2, device="cuda:1")


def nested() -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)])


def quantized() -> torch.Tensor:
    return torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.qint8)


TENSORS: list[tuple[str, Callable[[], Any], str, str, tuple[int, ...] | None, str, int]] = [
    ("dense", lambda: torch.ones(2, 3), "tensor", "cpu", (2, 3), "float32", 24),
    ("scalar", lambda: torch.tensor(3), "tensor", "cpu", (), "int64", 8),
    ("complex", lambda: torch.ones(2, dtype=torch.complex64), "tensor", "cpu", (2,), "complex64", 16),
    ("bool", lambda: torch.ones(5, dtype=torch.bool), "tensor", "cpu", (5,), "bool", 5),
    ("meta", lambda: torch.ones(4, device="meta"), "tensor", "meta", (4,), "float32", 0),
    ("expanded", lambda: torch.ones(1).expand(99), "tensor", "cpu", (99,), "float32", 4),
    ("view", lambda: torch.ones(100)[:10], "tensor", "cpu", (10,), "float32", 40),
    ("parameter", lambda: torch.nn.Parameter(torch.ones(3)), "parameter", "cpu", (3,), "float32", 12),
    ("buffer", lambda: torch.nn.Buffer(torch.ones(3)), "tensor", "cpu", (3,), "float32", 12),
    ("uninitialized", UninitializedParameter, "parameter", "cpu", None, "float32", 0),
    ("uninitialized buffer", UninitializedBuffer, "tensor", "cpu", None, "float32", 0),
    ("coo", lambda: torch.eye(3).to_sparse(), "tensor", "cpu", (3, 3), "float32", 60),
    ("csr", lambda: torch.eye(3).to_sparse_csr(), "tensor", "cpu", (3, 3), "float32", 68),
    ("csc", lambda: torch.eye(3).to_sparse_csc(), "tensor", "cpu", (3, 3), "float32", 68),
    ("nested", nested, "tensor", "cpu", None, "float32", 36),
    ("fake", fake, "tensor", "cuda:1", (3, 2), "float32", 0),
    ("quantized", quantized, "tensor", "cpu", (3,), "qint8", 3),
]


@pytest.mark.parametrize("case", TENSORS, ids=[case[0] for case in TENSORS])
@pytest.mark.filterwarnings("ignore")
def test_facts(case: tuple[Any, ...]) -> None:
    _, make, kind, device, shape, dtype, size = case
    t = make()
    assert placement.kind_of(t) == kind
    assert placement.device_of(t) == device
    assert placement.devices_of(t) == (device,)
    assert placement.shape_of(t) == shape
    assert placement.dtype_of(t) == dtype
    assert placement.bytes_of(t) == size
    assert placement.same(t, t)
    with placement.quiet():
        facts = placement.FactReader().facts(t)
    assert (facts.device, facts.shape, facts.dtype, facts.bytes) == (device, shape, dtype, size)


def test_jagged_size_is_not_a_number() -> None:
    jagged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    assert placement.shape_of(jagged) == (2, -1, 3)
    assert placement.device_of(jagged) == "cpu"


@pytest.mark.filterwarnings("ignore")
def test_distributed_tensor_takes_what_its_local_part_takes() -> None:
    distributed = pytest.importorskip("torch.distributed")
    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    from torch.distributed.device_mesh import init_device_mesh

    tensors = pytest.importorskip("torch.distributed.tensor")  # public since 2.5
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        whole = tensors.distribute_tensor(torch.ones(4, 2), init_device_mesh("cpu", (1,)), [tensors.Shard(0)])
        assert placement.device_of(whole) == "cpu"
        assert placement.shape_of(whole) == (4, 2)
        assert placement.bytes_of(whole) == 32
        assert placement.storage_of(whole) is None
    finally:
        distributed.destroy_process_group()


def test_subclass_counts_its_own_memory() -> None:
    class Tagged(torch.Tensor):
        tag: Any

    tagged = torch.ones(4).as_subclass(Tagged)
    tagged.tag = torch.ones(100)
    assert placement.bytes_of(tagged) == 16
    assert placement.storage_of(tagged) is not None


def test_reading_under_modes_runs_none() -> None:
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function)
            return function(*args, **(kwargs or {}))

    t, sparse = torch.ones(3), torch.eye(2).to_sparse()
    with Mode():
        for tensor in (t, sparse):
            placement.device_of(tensor)
            placement.shape_of(tensor)
            placement.bytes_of(tensor)
            placement.devices_of(tensor)
    assert seen == []


def test_reading_makes_no_operation() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function)
            return function(*args, **(kwargs or {}))

    everything = [torch.ones(3), torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr(), torch.nn.Linear(2, 2)]
    with Mode():
        for thing in everything:
            placement.devices_of(thing)
            placement.bytes_of(thing)
            placement.storage_of(thing)
    assert seen == []


def test_same() -> None:
    t = torch.ones(4)
    assert placement.same(t, t[:2])
    assert placement.same(t.view(2, 2), t)
    assert placement.same(t, t.detach())
    assert not placement.same(t, t.clone())
    assert not placement.same(t, 3)
    assert not placement.same(torch.empty(0), torch.empty(0))


def test_gradient_of_others_than_leaves_is_not_asked_for(recwarn: pytest.WarningsRecorder) -> None:
    leaf = torch.ones(3, requires_grad=True)
    result = leaf * 2
    result.sum().backward()
    assert placement.grad_of(leaf) is leaf.grad
    assert placement.grad_of(result) is None
    assert not recwarn.list


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Batch:
    x: Any
    extra: Any = None


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any) -> None:
        self.a = a


def paths(o: Any, **kwargs: Any) -> list[str]:
    return [found.path for found in placement.walk(o, **kwargs)]


def test_paths_can_be_written_behind_the_name() -> None:
    t = [torch.ones(1) for _ in range(9)]
    thing = {
        "q": t[0], 3: [t[1], (t[2],)], ("a", 1): t[3], "pair": Pair(t[4], {"k": t[5]}),
        "batch": Batch(t[6], collections.deque([t[7]])), "slots": Slotted(t[8]),
    }  # fmt: skip
    for found in placement.walk(thing):
        assert eval(f"thing{found.path}") is found.value
    assert sorted(map(id, t)) == sorted(id(found.value) for found in placement.walk(thing))


def test_path_of_every_tensor_of_a_module() -> None:
    class Net(torch.nn.Module):
        table = torch.ones(2)

        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
            self.heads = torch.nn.ModuleDict({"age": torch.nn.Linear(2, 1), "a b": torch.nn.Linear(2, 1)})
            self.scales = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(1))])
            self.named = torch.nn.ParameterDict({"w": torch.nn.Parameter(torch.ones(1))})
            self.pe = torch.ones(3)
            self.extra = {"mask": torch.ones(1), "layers": [torch.nn.Linear(1, 1)]}

    net = Net()
    found = list(placement.walk(net))
    for one in found:
        assert eval(f"net{one.path}") is one.value
    assert len(found) == 2 + 5 + 4 + 1 + 1 + 1 + 1 + 1 + 2
    by_path = {one.path: one for one in found}
    assert by_path[".body[1].running_mean"].via == "buffer"
    assert by_path[".heads['age'].weight"].via == "parameter"
    assert (by_path[".pe"].via, by_path[".pe"].owner, by_path[".pe"].attribute) == ("attribute", net, "pe")
    assert (by_path[".extra['mask']"].via, by_path[".extra['mask']"].attribute) == ("item", "extra['mask']")
    assert by_path[".extra['layers'][0].weight"].owner is net.extra["layers"][0]  # type: ignore[index]
    inside = placement.inside(net)
    assert {id(one) for one in inside} == {id(one.value) for one in found}
    assert {id(one) for one in inside.registered} == {id(one) for one in (*net.parameters(), *net.buffers())}


def test_optimizer_state_tells_its_parameter() -> None:
    net = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = [found for found in placement.walk(optimizer) if found.via == "state"]
    assert [found.attribute for found in state[:3]] == [
        "state[p]['step']", "state[p]['exp_avg']", "state[p]['exp_avg_sq']",
    ]  # fmt: skip
    for found in state:
        assert found.owner is optimizer
        name = found.attribute.split("'")[1]
        assert optimizer.state[found.key][name] is found.value
    assert placement.is_optimizer(optimizer)
    assert not placement.is_optimizer(net)


def test_closures_partials_methods() -> None:
    weight = torch.ones(3)

    def hook(x: Any, scale: Any = torch.ones(1), *, bias: Any = torch.ones(2)) -> Any:  # noqa: B008
        return x * weight * scale + bias

    found = {found.path: found for found in placement.walk(hook)}
    assert set(found) == {".__closure__[0].cell_contents", ".__defaults__[0]", ".__kwdefaults__['bias']"}
    assert found[".__closure__[0].cell_contents"].key == "weight"
    assert all(one.via == "closure" for one in found.values())
    assert placement.kind_of(hook) == "function"
    assert paths(functools.partial(len, weight)) == [".args[0]"]
    assert placement.kind_of(functools.partial(len, weight)) == "function"
    net = torch.nn.Linear(2, 2)
    assert paths(net.forward)[0] == ".__self__.weight"


def test_a_decorated_function_is_told_by_the_one_that_it_wraps() -> None:
    weight = torch.ones(3)

    def step(x: Any) -> Any:
        return x * weight

    @functools.wraps(step)
    def timed(x: Any) -> Any:
        return step(x)

    (found,) = placement.walk(timed)
    assert found.path == ".__wrapped__.__closure__[0].cell_contents"
    assert (found.via, found.key) == ("closure", "weight")


class Keeper:
    """Keeps the globals of a program."""

    def __init__(self, names: Any) -> None:
        self.names = names
        self.own = torch.ones(2)


class KeepingModule(torch.nn.Module):
    def __init__(self, names: Any) -> None:
        super().__init__()
        self.names = names


def keeping(names: Any) -> dict[str, Any]:
    def timed() -> Any:
        return names

    return {"timed": timed, "partial": functools.partial(timed, names), "module": KeepingModule(names),
            "deep": {"a": [timed, {"b": names}]}, "list": [names], "itself": names}  # fmt: skip


def test_who_keeps_the_globals_of_a_program_does_not_own_what_they_name() -> None:
    names: dict[str, Any] = {"x": torch.ones(3)}
    exec("def step(): pass", names)
    for value in keeping(names).values():
        assert placement.kind_of(value) in (None, "module")
        assert placement.devices_of(value) in ((), ("cpu",) if value is names else ())
    assert paths(Keeper(names)) == [".own"]
    assert paths(names) == ["['x']"]  # asked for it itself
    assert placement.kind_of({"x": torch.ones(3)}) == "container"  # names that are nobody's globals


def test_hooks_are_members_but_no_part_of_where_a_module_lives() -> None:
    net = torch.nn.Linear(2, 2)
    constant = torch.ones(2, device="meta")
    net.register_forward_hook(lambda module, inputs, output: output + constant)
    assert placement.devices_of(net) == ("cpu",)
    assert any(found.value is constant for found in placement.walk(net))


@pytest.mark.filterwarnings("ignore")
def test_script_and_compiled_modules() -> None:
    scripted = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)))
    assert paths(scripted)[:2] == ["[0].weight", "[0].bias"]
    assert len(paths(scripted)) == 7
    assert placement.devices_of(scripted) == ("cpu",)
    compiled = torch.compile(torch.nn.Linear(2, 2))
    assert placement.kind_of(compiled) == "module"
    assert placement.devices_of(compiled) == ("cpu",)


def test_wrapped_modules() -> None:
    parallel = torch.nn.DataParallel(torch.nn.Linear(2, 2))
    assert paths(parallel) == [".module.weight", ".module.bias"]


def test_kinds_of_other_things() -> None:
    data = torch.utils.data.TensorDataset(torch.ones(4, 2))
    net = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2, 1)])
    expected = {
        "dataset": data, "loader": torch.utils.data.DataLoader(data), "optimizer": optimizer,
        "scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1), "scaler": torch.amp.GradScaler("cpu"),
        "generator": torch.Generator(), "storage": torch.ones(2).untyped_storage(), "packed sequence": packed,
        "container": [torch.ones(1)], "object": Batch(torch.ones(1)),
    }  # fmt: skip
    for kind, thing in expected.items():
        assert placement.kind_of(thing) == kind
    for nothing in (
        None,
        3,
        "x",
        [1],
        {},
        sys,
        len,
        Batch,
        Batch(1),
        object(),
        torch.device("cpu"),
        torch.float32,
        sys,
    ):
        assert placement.kind_of(nothing) is None


def test_arrays_of_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.ones((2, 3), dtype="float64")
    assert placement.kind_of(array) == "array"
    assert placement.device_of(array) == "cpu"
    assert (placement.shape_of(array), placement.dtype_of(array), placement.bytes_of(array)) == ((2, 3), "float64", 48)

    class Mine(numpy.ndarray):  # type: ignore[misc, name-defined]
        pass

    assert placement.kind_of(array.view(Mine)) is None


def test_walk_is_bounded() -> None:
    deep: Any = torch.ones(1)
    for _ in range(20):
        deep = [deep]
    assert paths(deep) == []
    assert paths(deep, depth=20) == ["[0]" * 20]
    assert len(paths([torch.ones(1) for _ in range(10)], limit=3)) == 3
    t = torch.ones(1)
    assert paths([t, t, [t]]) == ["[0]"]


def test_nothing_has_a_device_without_torch() -> None:
    code = (
        "import sys, ipydevice.placement as p, ipydevice.listing as l\n"
        "assert 'torch' not in sys.modules\n"
        "assert p.kind_of([1, {'a': 2}]) is None and not p.is_tensor(3) and p.devices_of([1]) == ()\n"
        "assert l.list_namespace({'a': 1}).rows == () and l.frame_rows({'a': 1}, 'f', True) == []\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

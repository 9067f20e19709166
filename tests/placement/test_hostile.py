"""No code of the user's runs, whatever the object."""

from __future__ import annotations

import threading
from typing import Any

import hostile
import pytest
import torch

from ipydevice import placement, show
from ipydevice.completion import candidates
from ipydevice.listing import examine, frame_rows, list_namespace

COUNTER = hostile.Counter()
OBJECTS = list(hostile.corpus(COUNTER))


def test_corpus_is_large() -> None:
    assert len(OBJECTS) >= 60


@pytest.mark.parametrize("index", range(len(OBJECTS)), ids=[name for name, _ in OBJECTS])
def test_nothing_of_the_users_runs(index: int) -> None:
    name, thing = OBJECTS[index]
    COUNTER.ran.clear()
    with hostile.armed(COUNTER):
        kind = placement.kind_of(thing)
        paths = [member.path for member in placement.members(thing)]
        found = [one.path for one in placement.walk(thing)]
        devices = placement.devices_of(thing)
        inside = len(list(placement.inside(thing)))
        rows = list_namespace({"thing": thing}, cells=["thing(thing)\nthing.x"], kept=[("output", "_", [thing])]).rows
        in_frame = frame_rows({"thing": thing}, "f()", True)
        opened, odd = examine({"thing": thing}, verbose=True)
        offered = candidates({"thing": thing}, "%devices th", "th")
    assert COUNTER.ran == []
    assert all(type(path) is str for path in paths)
    assert offered == (["thing"] if rows else [])
    assert len(opened.rows) >= len(rows)
    assert odd == []
    assert "\x1b" not in show.text(opened)
    assert "<script" not in show.html(opened)
    if name.startswith("empty") or "__dict__ of Dataset" in name:
        assert kind in (None, "dataset")
        return
    assert kind is not None
    assert len(found) >= 1
    assert len(devices) == 1
    assert inside >= 1
    assert [row.kind for row in rows] == [row.kind for row in in_frame] == [kind]


def test_all_at_once() -> None:
    COUNTER.ran.clear()
    everything = {f"x{i}": thing for i, (_, thing) in enumerate(OBJECTS)}
    with hostile.armed(COUNTER):
        rows = list_namespace(everything).rows
        inner = list(placement.walk(list(everything.values()), limit=10_000))
    assert COUNTER.ran == []
    assert len(rows) > 300
    assert len(inner) > 300


def test_the_counter_can_fail() -> None:
    """The corpus proves something: asking as everybody asks does run its code."""
    names = dict(OBJECTS)
    COUNTER.ran.clear()
    with hostile.armed(COUNTER):
        for name in ("__class__ of Plain", "__len__ of list", "__torch_function__ of Tensor", "wrapper tensor"):
            with pytest.raises(AssertionError):
                _ask(names[name])
    assert len(COUNTER.ran) == 4


def _ask(thing: Any) -> None:
    isinstance(thing, torch.nn.Module)
    if type(thing).__name__ == "Onelist":
        len(thing)
    assert thing.device is not None


def test_a_module_hidden_behind_a_class_property_is_still_told() -> None:
    class Liar:
        @property  # type: ignore[misc]
        def __class__(self) -> Any:
            return torch.nn.Module

    assert not placement.is_module(Liar())
    assert placement.kind_of(Liar()) is None


def test_names_of_a_hostile_workspace_are_text_in_every_view() -> None:
    strange = '<img src=x onerror=alert(1)>\x1b[31m\u202e"&amp;'
    net = torch.nn.Linear(1, 1)
    net.__dict__[strange] = torch.ones(1)
    found = list_namespace({strange: torch.ones(1), "d": {strange: torch.ones(1)}, "net": net}).rows
    opened, _ = examine({strange: torch.ones(1), "d": {strange: torch.ones(1)}, "net": net}, verbose=True)
    assert found[0].name == strange
    text, page = show.text(opened), show.html(opened)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<img" not in page
    assert "\x1b" not in page


@pytest.mark.parametrize(
    "base", [torch.Generator, torch.UntypedStorage, torch.Stream, torch.Event], ids=lambda base: base.__name__
)
def test_devices_of_hostile_streams_events_generators_and_storages(base: Any) -> None:
    counter = hostile.Counter()
    properties = {name: hostile.counting_property(counter, base, name) for name in ("device", "nbytes", "_cdata")}
    try:
        thing = type("Mine", (base,), properties)(
            *({"Stream": ["cpu"], "Event": ["cpu"], "UntypedStorage": [4]}.get(base.__name__, []))
        )
    except TypeError:
        pytest.skip("this torch lets nobody derive from it")
    with hostile.armed(counter):
        (row,) = list_namespace({"thing": thing}).rows
    assert counter.ran == []
    assert row.device == "cpu"


def test_million_items_are_bounded() -> None:
    numbers = list(range(1_000_000))
    assert placement.kind_of(numbers) is None
    assert placement.kind_of([torch.ones(1), *numbers]) == "container"


def test_threads_that_change_a_dictionary() -> None:
    shared: dict[str, Any] = {"x": torch.ones(1)}
    stop = threading.Event()

    def churn() -> None:
        i = 0
        while not stop.is_set():
            shared[f"n{i % 50}"] = torch.ones(1)
            shared.pop(f"n{(i + 25) % 50}", None)
            i += 1

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(200):
            assert list_namespace({"shared": shared, **shared}).rows
            assert placement.devices_of(shared) == ("cpu",)
    finally:
        stop.set()
        thread.join()


def test_nothing_is_kept_alive() -> None:
    import gc
    import weakref

    class Net(torch.nn.Module):
        scale = torch.ones(2)

        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(2, 2)

    net = Net()
    gone = weakref.ref(net), weakref.ref(Net), weakref.ref(net.fc.weight)
    listed = list_namespace({"net": net})
    placement.devices_of(net)
    del net, Net
    gc.collect()
    assert [ref() for ref in gone] == [None, None, None]
    assert listed.rows[0].device == "cpu"

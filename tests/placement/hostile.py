"""Objects whose every method counts that it ran.

`corpus` makes them, each with a tensor inside; the counter is armed only once they are made, since
setting them up runs some of their methods.
"""

from __future__ import annotations

import collections
import functools
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass
class Counter:
    """What ran of the user's code since it was armed."""

    armed: bool = False
    ran: list[str] = field(default_factory=list)

    def hit(self, what: str) -> None:
        if self.armed:
            self.ran.append(what)
            raise AssertionError(f"{what} of the user's was run")


@contextmanager
def armed(counter: Counter) -> Iterator[None]:
    counter.armed = True
    try:
        yield
    finally:
        counter.armed = False


METHODS = (
    "__getattr__", "__getattribute__", "__repr__", "__str__", "__format__", "__eq__", "__ne__", "__hash__", "__bool__",
    "__len__", "__iter__", "__next__", "__contains__", "__getitem__", "__call__", "__length_hint__", "__reversed__",
    "__index__", "__int__", "__float__", "__array__", "__dlpack__", "__dlpack_device__", "__dir__", "__sizeof__",
    "__reduce_ex__", "__copy__", "__deepcopy__", "__enter__", "__get__", "__missing__", "__instancecheck__",
    "__subclasscheck__", "__fspath__", "__torch_function__", "__cuda_array_interface__", "__array_interface__",
)  # fmt: skip
PROPERTIES = (
    "__class__", "__dict__", "__doc__", "__module__", "device", "shape", "dtype", "grad", "data", "is_cuda",
    "_parameters", "_modules", "state", "param_groups", "dataset", "hf_device_map", "items", "keys", "values",
    "_fields", "__wrapped__", "__closure__", "nbytes",
)  # fmt: skip
_OF_OBJECT = frozenset({"__getattribute__", "__eq__", "__ne__", "__hash__", "__repr__", "__str__", "__format__",
                        "__dir__", "__sizeof__", "__reduce_ex__"})  # fmt: skip


def counting(counter: Counter, base: type, name: str) -> Callable[..., Any]:
    """A method that counts and then does what the base's does, as long as the counter is not armed."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        counter.hit(f"{name} of {base.__name__}")
        inherited = getattr(base, name, None)
        if inherited is None:
            raise AttributeError(*args)
        return inherited(self, *args, **kwargs)

    return method


def counting_property(counter: Counter, base: type, name: str) -> property:
    def get(self: Any) -> Any:
        counter.hit(f"property {name} of {base.__name__}")
        return object.__getattribute__(self, "__dict__").get(name)

    return property(get, lambda self, value: object.__getattribute__(self, "__dict__").__setitem__(name, value))


def hostile_meta(counter: Counter) -> type:
    """A metaclass that counts whatever is asked of its classes."""
    names = ("__getattribute__", "__eq__", "__hash__", "__instancecheck__", "__subclasscheck__", "__repr__", "__dir__",
             "__call__", "__iter__", "__len__", "__bool__")  # fmt: skip
    space: dict[str, Any] = {name: counting(counter, type, name) for name in names}
    space["__bool__"] = lambda cls: counter.hit("__bool__ of a class") or True
    for name in ("__mro__", "__name__", "__module__", "__dict__", "__bases__", "__flags__"):
        space[name] = property(functools.partial(_of_class, counter, name))
    return type("Meta", (type,), space)


def _of_class(counter: Counter, name: str, cls: type) -> Any:
    counter.hit(f"property {name} of a class")
    return type.__dict__[name].__get__(cls)


def plain(base: type, tensor: torch.Tensor) -> Any:
    """An instance of a hostile class with the tensor inside; `base` is that class."""
    if issubclass(base, dict):
        made = base.__new__(base)
        dict.__setitem__(made, "x", tensor)
    elif issubclass(base, list):
        made = base.__new__(base)
        list.append(made, tensor)
    elif issubclass(base, tuple):
        made = tuple.__new__(base, (tensor,))
    elif issubclass(base, frozenset):
        made = frozenset.__new__(base, (tensor,))
    elif issubclass(base, set):
        made = base.__new__(base)
        set.add(made, tensor)
    elif issubclass(base, collections.deque):
        made = base.__new__(base)
        collections.deque.append(made, tensor)
    elif issubclass(base, collections.UserDict):
        made = base.__new__(base)
        _own_dict(made)["data"] = {"x": tensor}
    elif issubclass(base, torch.Tensor):
        made = tensor.as_subclass(base)
    elif issubclass(base, torch.nn.Module):
        made = base.__new__(base)
        clean = torch.nn.Linear(1, 1, bias=False)
        clean.weight = torch.nn.Parameter(tensor)
        _own_dict(made).update(clean.__dict__)
    elif issubclass(base, torch.optim.Optimizer):
        made = base.__new__(base)
        _own_dict(made).update(torch.optim.SGD([torch.nn.Parameter(tensor)], lr=0.1).__dict__)
    else:
        made = base.__new__(base)
        _own_dict(made)["x"] = tensor
    return made


def _own_dict(o: Any) -> dict[str, Any]:
    for cls in type.__dict__["__mro__"].__get__(type(o)):
        descriptor = type.__dict__["__dict__"].__get__(cls).get("__dict__")
        if type(descriptor) is types.GetSetDescriptorType:
            found: dict[str, Any] = descriptor.__get__(o)
            return found
    return {}  # the class has hidden it from everybody


class Plain:
    """Gives its subclasses a true ``__dict__`` below whatever they define."""


BASES: tuple[type, ...] = (
    Plain, dict, list, tuple, set, frozenset, collections.deque, collections.UserDict, collections.OrderedDict,
    collections.defaultdict, ValueError, torch.nn.Module, torch.optim.Optimizer, torch.utils.data.Dataset, torch.Tensor,
)  # fmt: skip


def corpus(counter: Counter) -> Iterator[tuple[str, Any]]:
    """Names and hostile objects; all but those called "empty ..." hold a tensor."""
    for base in BASES:
        methods = {name: counting(counter, base, name) for name in METHODS}
        if base is not torch.Tensor:
            del methods["__torch_function__"]
        else:
            methods["__torch_function__"] = classmethod(functools.partial(_torch_function, counter))
        properties = {name: counting_property(counter, base, name) for name in PROPERTIES}
        everything = type(f"All{base.__name__}", (base,), methods | properties)
        yield f"all of {base.__name__}", plain(everything, torch.ones(3))
        for name, method in (methods | properties).items():
            one = type(f"One{base.__name__}", (base,), {name: method})
            yield f"{name} of {base.__name__}", plain(one, torch.ones(3))
        if base is not torch.Tensor and type(base) is type:
            yield f"metaclass of {base.__name__}", _made_by_meta(counter, base)
    yield from special(counter)


def _torch_function(counter: Counter, cls: type, *args: Any, **kwargs: Any) -> Any:
    counter.hit("__torch_function__")
    return torch.Tensor.__torch_function__(*args, **kwargs)


def _made_by_meta(counter: Counter, base: type) -> Any:
    cls = hostile_meta(counter)("Strange", (base,), {})
    return plain(cls, torch.ones(3))


def special(counter: Counter) -> Iterator[tuple[str, Any]]:
    """Objects that need more than a method."""

    class Slots:
        __slots__ = ("inner", "unset")

    slots = Slots()
    slots.inner = torch.ones(3)
    yield "slots", slots

    class Lazy:
        """A proxy that makes its object when anything is asked of it."""

        def __getattribute__(self, name: str) -> Any:
            counter.hit(f"lazy proxy, {name}")
            return object.__getattribute__(self, name)

    yield "empty lazy proxy", Lazy()

    class Kept:
        x = torch.ones(3)

    kept = Kept()
    counter.kept = kept  # type: ignore[attr-defined]
    yield "empty weak proxy", weakref.proxy(kept)
    yield "class attribute", kept

    class Computed:
        """A property, a cached one and a descriptor."""

        cached = functools.cached_property(lambda self: counter.hit("cached property"))

        @property
        def weight(self) -> Any:
            return counter.hit("property")

        class Descriptor:
            def __get__(self, *args: Any) -> Any:
                return counter.hit("descriptor") if args[0] is not None else self

        other = Descriptor()

    yield "empty computed", Computed()

    class Key(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __repr__(self) -> str:
            counter.hit("repr of a key")
            return "key"

        def __str__(self) -> str:
            counter.hit("str of a key")
            return "key"

    class OddKey:
        def __hash__(self) -> int:
            counter.hit("hash of a key")
            return 3

        def __eq__(self, other: object) -> bool:
            counter.hit("eq of a key")
            return self is other

        def __repr__(self) -> str:
            counter.hit("repr of a key")
            return "key"

    yield "keys", {Key("a"): torch.ones(3), OddKey(): torch.ones(3), (OddKey(),): 3}

    inner: list[Any] = []
    inner.append({"self": inner, "x": torch.ones(3)})
    yield "contains itself", inner
    yield "mapping proxy of a mapping", types.MappingProxyType({"x": torch.ones(3)})

    class Mapping(collections.abc.Mapping):  # type: ignore[type-arg]
        def __getitem__(self, key: Any) -> Any:
            return counter.hit("getitem of a mapping")

        def __iter__(self) -> Iterator[Any]:
            counter.hit("iter of a mapping")
            return iter(())

        def __len__(self) -> int:
            counter.hit("len of a mapping")
            return 0

    yield "empty mapping", Mapping()
    yield "empty proxy of a mapping", types.MappingProxyType(Mapping())

    class Loader(torch.utils.data.DataLoader):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            return counter.hit("iter of a loader")

        def __len__(self) -> int:
            counter.hit("len of a loader")
            return 0

    class Data(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __init__(self) -> None:
            self.kept = torch.ones(3)

        def __getitem__(self, index: int) -> Any:
            return counter.hit("item of a dataset")

        def __len__(self) -> int:
            counter.hit("len of a dataset")
            return 4

    yield "loader", Loader(Data())

    def closure(value: Any) -> Callable[[], Any]:
        def function() -> Any:
            counter.hit("a function")
            return value

        return function

    yield "closure", closure(torch.ones(3))
    yield "partial", functools.partial(closure(3), torch.ones(3))
    yield "iterator", iter([torch.ones(3)])
    yield "zip of a hostile iterable", zip([torch.ones(3)], (counter.hit("zip") for _ in range(3)), strict=False)
    yield "cache", functools.lru_cache(closure(torch.ones(3)))
    yield "keyed by tensors", {torch.ones(3): Key("a")}
    yield "view of keys", {torch.ones(3): OddKey()}.keys()

    class Mapped(type):
        """The locals of a class body of its, in which the error is, are asked in Python."""

        class Space(dict):  # type: ignore[type-arg]
            def items(self) -> Any:
                return counter.hit("items of the locals of a class body")

            __iter__ = __len__ = keys = values = items  # type: ignore[assignment]

        @classmethod
        def __prepare__(cls, *args: Any) -> Any:
            return cls.Space()

    def fail(held: Any) -> None:
        class Body(metaclass=Mapped):
            raise ValueError(held)

    try:
        fail([torch.ones(3)])
    except ValueError as error:
        yield "kept exception", error
    yield "generator whose variables lead to a tensor", (counter.hit("generator") for _ in range(3))
    yield "bound method", types.MethodType(closure(3), kept)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(2, 2)

        @property
        def device(self) -> Any:
            return counter.hit("property device of a module")

        def parameters(self, recurse: bool = True) -> Any:
            return counter.hit("parameters()")

        named_parameters = named_buffers = modules = state_dict = children = named_modules = parameters

        def forward(self, x: Any) -> Any:
            return counter.hit("forward")

    yield "module", Net()

    class Wrapper(torch.Tensor):
        """Answers for its device and sizes in Python."""

        @staticmethod
        def __new__(cls: Any, value: torch.Tensor) -> Any:
            return torch.Tensor._make_wrapper_subclass(
                cls, value.shape, dtype=value.dtype, device="meta", dispatch_sizes_strides_policy="sizes",
                dispatch_device=True,
            )  # fmt: skip

        @classmethod
        def __torch_dispatch__(cls, function: Any, *args: Any) -> Any:
            return counter.hit(f"__torch_dispatch__, {function}")

        @classmethod
        def __torch_function__(cls, function: Any, *args: Any) -> Any:
            return counter.hit(f"__torch_function__, {function}")

    yield "wrapper tensor", Wrapper(torch.ones(2))

    thread_local = type("Local", (__import__("threading").local,), {"__init__": lambda self: counter.hit("local")})()
    yield "empty thread local", thread_local

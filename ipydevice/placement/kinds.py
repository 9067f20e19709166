"""Which class an object is of, asked without running code of that class.

``isinstance`` runs a ``__class__`` property, ``issubclass`` a metaclass's
``__subclasscheck__``, ``x in mro`` a metaclass's ``__eq__`` and a set of classes its
``__hash__``.  What is left is `type.__subclasscheck__`, which reads the real method
resolution order in C, and the identity of classes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

_subclass = type.__subclasscheck__
_mro = type.__dict__["__mro__"].__get__
_namespace = type.__dict__["__dict__"].__get__
_name = type.__dict__["__name__"].__get__
_type_flags = type.__dict__["__flags__"].__get__
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE of CPython's object.h: made by a class statement (or by a C module)

# Dotted names below a package; looked up only where the package is loaded.
_TORCH_CLASSES = {
    "tensor": "Tensor",
    "parameter": "nn.parameter.Parameter",
    "uninitialized": "nn.parameter.UninitializedTensorMixin",
    "module": "nn.modules.module.Module",
    "script": "jit._script.ScriptModule",
    "optimizer": "optim.Optimizer",
    "scheduler": "optim.lr_scheduler.LRScheduler",
    "scaler": "amp.grad_scaler.GradScaler",
    "loader": "utils.data.dataloader.DataLoader",
    "dataset": "utils.data.dataset.Dataset",
    "generator": "_C.Generator",
    "stream": "_C.Stream",
    "cuda stream": "cuda.streams.Stream",
    "event": "_C.Event",
    "cuda event": "cuda.streams.Event",
    "mps event": "mps.event.Event",
    "script parameters": "_C.ParameterDict",
    "script buffers": "_C.BufferDict",
    "storage": "storage.UntypedStorage",
    "typed storage": "storage.TypedStorage",
    "packed": "nn.utils.rnn.PackedSequence",
}
_ARRAY_CLASSES = (
    ("numpy", "ndarray"),
    ("cupy", "ndarray"),
    ("jaxlib._jax", "ArrayImpl"),
    ("jaxlib.xla_extension", "ArrayImpl"),
    ("tensorflow.python.framework.ops", "EagerTensor"),
)


def bases(cls: type) -> tuple[type, ...]:
    """A class and its bases, nearest first."""
    found: tuple[type, ...] = _mro(cls)
    return found


def class_dicts(cls: type) -> list[Mapping[str, Any]]:
    """The namespaces of a class and its bases, nearest first."""
    return [_namespace(base) for base in _mro(cls)]


def class_name(cls: type) -> str:
    """The name in the class statement; ``cls.__name__`` may be a property of a metaclass."""
    name: str = _name(cls)
    return name


def module_name(cls: type) -> str:
    """The module of the class statement: "torch.nn.modules.linear"; read past a metaclass's own ``__module__``."""
    module = _namespace(cls).get("__module__")
    return module if type(module) is str else "builtins"


def home_of(o: object) -> str:
    """The top-level package in which the object's class was made: "torch", "__main__"."""
    return module_name(type(o)).partition(".")[0]


def made_by_statement(cls: type) -> bool:
    """Whether a class lives on the heap, as those of a ``class`` statement do."""
    return bool(_type_flags(cls) & _HEAP_TYPE)


def look_up(package: Any, dotted: str) -> Any:
    """What stands at ``package.dotted`` among loaded modules, or None."""
    for part in dotted.split("."):
        space = package.__dict__ if type(package) is ModuleType else None
        package = getattr(package, part, None) if space is None else space.get(part)
        if package is None:
            return None
    return package


_found: dict[str, type] = {}


def torch_class(name: str) -> type | None:
    """One of torch's classes, by our name for it, if that part of torch is loaded."""
    cls = _found.get(name)
    if cls is None:
        torch = sys.modules.get("torch")
        if type(torch) is not ModuleType:
            return None
        cls = look_up(torch, _TORCH_CLASSES[name])
        if cls is None or not _subclass(type, type(cls)):
            return None
        _found[name] = cls
    return cls


def is_a(o: object, name: str) -> bool:
    """Whether the object's real class derives from torch's class of that name."""
    cls = _found.get(name) or torch_class(name)
    return cls is not None and _subclass(cls, type(o))


def is_tensor(o: object) -> bool:
    """Whether `o` is a `torch.Tensor` or of a subclass of it."""
    return is_a(o, "tensor")


def is_parameter(o: object) -> bool:
    """Whether `o` is a parameter: of class `Parameter`, or a tensor subclass that says so of itself.

    ``Parameter(subclass_tensor)`` keeps the subclass and sets ``_is_param`` in its ``__dict__``
    (torch/nn/parameter.py, ``Parameter.__new__``).
    """
    if is_a(o, "parameter"):
        return True
    if not is_a(o, "tensor") or type(o) is _found["tensor"]:
        return False
    return attributes(o).get("_is_param") is True


def is_module(o: object) -> bool:
    """Whether `o` is a `torch.nn.Module`."""
    return is_a(o, "module")


def is_optimizer(o: object) -> bool:
    """Whether `o` is a `torch.optim.Optimizer`."""
    return is_a(o, "optimizer")


def is_stream(o: object) -> bool:
    """Whether `o` is a stream of torch's, or of a virtual GPU."""
    if is_a(o, "stream") or is_a(o, "cuda stream"):
        return True
    virtual = sys.modules.get("ipydevice.virtual.cuda_api")
    return virtual is not None and type(o) is virtual.Stream


def is_event(o: object) -> bool:
    """Whether `o` is an event of torch's, or of a virtual GPU."""
    if is_a(o, "event") or is_a(o, "cuda event") or is_a(o, "mps event"):
        return True
    virtual = sys.modules.get("ipydevice.virtual.cuda_api")
    return virtual is not None and _subclass(virtual.Event, type(o))


def is_array(o: object) -> bool:
    """Whether `o` is exactly an array of NumPy, CuPy, JAX or TensorFlow, as far as these are loaded."""
    return array_library(o) is not None


def array_library(o: object) -> str | None:
    """The module whose array class is exactly that of `o`."""
    for module, name in _ARRAY_CLASSES:
        loaded = sys.modules.get(module)
        if loaded is not None and type(loaded) is ModuleType and loaded.__dict__.get(name) is type(o):
            return module
    return None


_thread_local = sys.modules["_thread"]._local


def attributes(o: object) -> dict[str, Any]:
    """The instance's own ``__dict__``, or an empty dictionary; not to be written to.

    ``object.__getattribute__(o, "__dict__")`` would run a property of that name, so the
    real descriptor is looked for; `threading.local` may run ``__init__`` to answer.
    """
    cls = type(o)
    if _subclass(_thread_local, cls):
        return {}
    for space in class_dicts(cls):
        descriptor = space.get("__dict__")
        if type(descriptor) is GetSetDescriptorType or type(descriptor) is MemberDescriptorType:
            try:
                found = descriptor.__get__(o, cls)
            except (AttributeError, TypeError):
                return {}
            if type(found) is dict:
                return found
            return dict.copy(found) if _subclass(dict, type(found)) else {}
    return {}

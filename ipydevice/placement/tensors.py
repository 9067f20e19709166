"""Facts of one tensor: metadata only, never its values, without ``__torch_function__`` of anybody.

A class with a ``__torch_dispatch__`` of its own may also answer for device and sizes
(``dispatch_device=True``); of such a class outside torch only what the storage says is read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import MemberDescriptorType
from typing import Any

from ipydevice.placement.kinds import (
    array_library,
    attributes,
    bases,
    class_dicts,
    is_a,
    is_event,
    is_stream,
    is_tensor,
    made_by_statement,
    module_name,
    torch_class,
)

UNKNOWN = "?"
Shape = tuple[int, ...]
Memory = tuple[int, int]  # identity of a storage, its bytes

_subclass = type.__subclasscheck__


def quiet() -> Any:
    """A context in which reading a tensor's attribute asks nobody.

    ``DisableTorchFunctionSubclass`` would leave the modes on: under ``with torch.device("cuda")`` each read runs one.
    """
    return sys.modules["torch"]._C.DisableTorchFunction()


def is_plain(t: object) -> bool:
    """Whether `t` is exactly a Tensor or Parameter, so that no class of the user's can be asked."""
    cls = type(t)
    return cls is torch_class("tensor") or cls is torch_class("parameter")


def _dispatching(t: object) -> Mapping[str, Any] | None:
    """Namespace of the class that gives `t` its ``__torch_dispatch__``; None where that is Tensor itself."""
    if is_plain(t):
        return None
    own = next((space for space in class_dicts(type(t)) if "__torch_dispatch__" in space), None)
    disabled = vars(torch_class("tensor")).get("__torch_dispatch__")
    return None if own is None or own["__torch_dispatch__"] is disabled else own


def answers_itself(t: object) -> bool:
    """Whether a ``__torch_dispatch__`` outside torch might be asked for the tensor's device or sizes."""
    own = _dispatching(t)
    if own is None:
        return False
    module = own.get("__module__")
    return not (type(module) is str and module.split(".")[0] == "torch")


def read(t: object, name: str) -> Any:
    """`torch.Tensor`'s own attribute of that name, or None where the kind of tensor has none.

    The descriptor is looked up at each call because virtual GPUs replace some of them.
    """
    tensor = torch_class("tensor")
    try:
        with quiet():
            return getattr(tensor, name).__get__(t, tensor)
    except Exception:  # noqa: BLE001 (NestedTensorImpl, SparseTensorImpl and others refuse with several types)
        return None


def call(t: object, name: str) -> Any:
    """What `torch.Tensor`'s own method of that name returns, or None where it refuses."""
    tensor = torch_class("tensor")
    try:
        with quiet():
            return getattr(tensor, name)(t)
    except Exception:  # noqa: BLE001 (as above)
        return None


def device_of(o: object) -> str:
    """Device of a tensor (or generator, storage, stream, event, array): "cpu"; "?" where it cannot be told."""
    if is_tensor(o):
        if answers_itself(o):
            storage = call(o, "untyped_storage")
            return UNKNOWN if storage is None else str(storage.device)
        device = read(o, "device")
        return UNKNOWN if device is None else str(device)
    if array_library(o) is not None:
        return _array_device(o)
    if is_stream(o) or is_event(o) or any(is_a(o, name) for name in ("storage", "typed storage", "generator")):
        return _other_device(o)
    return UNKNOWN


def shape_of(t: object) -> Shape | None:
    """Sizes of a tensor or array; -1 for one that is not a plain number; None where it has none or hides it."""
    if array_library(t) is not None:
        shape = getattr(t, "shape", None)
    elif not is_tensor(t) or is_a(t, "uninitialized") or answers_itself(t):
        shape = None
    else:
        shape = read(t, "shape")
    if shape is None:
        return None
    return tuple(size if type(size) is int else -1 for size in shape)


def dtype_of(t: object) -> str | None:
    """Type of the elements as users write it: "float32", "int64"; None where it cannot be told."""
    dtype = getattr(t, "dtype", None) if array_library(t) is not None else read(t, "dtype")
    return None if dtype is None else str(dtype).removeprefix("torch.")


def bytes_of(t: object) -> int:
    """Bytes of memory that the elements of a tensor or array take; 0 for meta, fake and uninitialised tensors.

    An expanded tensor counts what it really has; of a sparse tensor indices and values count.
    """
    if array_library(t) is not None:
        size = getattr(t, "nbytes", 0)
        return size if type(size) is int else 0
    if not is_tensor(t) or is_a(t, "uninitialized"):
        return 0
    inner = inner_tensors(t)
    if inner:
        return sum(bytes_of(part) for part in inner)
    memory = storage_of(t)
    if memory is None:
        return 0
    count, size = (None, None) if answers_itself(t) else (call(t, "numel"), call(t, "element_size"))
    if type(count) is not int or type(size) is not int or read(t, "is_nested"):
        return memory[1]
    return min(memory[1], count * size)


def storage_of(t: object) -> Memory | None:
    """Identity and bytes of the memory a dense tensor lies in, or None where it has none of its own."""
    if not is_tensor(t) or is_a(t, "uninitialized") or is_fake(t) or inner_tensors(t):
        return None
    storage = call(t, "untyped_storage")
    if storage is None or storage.device.type == "meta":  # of the storage: a subclass may answer for `is_meta`
        return None
    return int(storage._cdata), int(storage.nbytes())


def memory_of_storage(o: object) -> Memory | None:
    """Identity and bytes of a storage object's memory, typed or not; None for anything else, and on meta."""
    storage = attributes(o).get("_untyped_storage") if is_a(o, "typed storage") else o
    plain = torch_class("storage")
    if plain is None or type(storage) is not plain or storage.device.type == "meta":  # type: ignore[attr-defined]
        return None
    return int(storage._cdata), int(storage.nbytes())  # type: ignore[attr-defined]


def grad_of(t: object) -> Any:
    """The gradient that a leaf holds, or None.  ``.grad`` of others would warn, so it is not read."""
    return read(t, "grad") if is_tensor(t) and read(t, "is_leaf") else None


def base_of(t: object) -> Any:
    """The tensor of which `t` is a view for autograd, or None."""
    return read(t, "_base")


def same(a: object, b: object) -> bool:
    """Whether two names lead to the same tensor: one object, one memory, or one a view of the other."""
    if a is b:
        return True
    if not (is_tensor(a) and is_tensor(b)):
        return False
    base_a, base_b = base_of(a), base_of(b)
    if (base_a is not None and (base_a is b or base_a is base_b)) or (base_b is not None and base_b is a):
        return True
    memory = storage_of(a)
    return memory is not None and memory[1] > 0 and memory == storage_of(b)


def is_fake(t: object) -> bool:
    """Whether `t` is one of torch's FakeTensors, which have a device but no memory."""
    fake = getattr(sys.modules.get("torch._subclasses.fake_tensor"), "FakeTensor", None)
    return fake is not None and _subclass(fake, type(t))


# Of sparse tensors, COO, CSR and BSR, CSC and BSC.
_PARTS = (("_indices", "_values"), ("crow_indices", "col_indices", "values"), ("ccol_indices", "row_indices", "values"))


def inner_tensors(t: object) -> list[Any]:
    """The tensors of which a composite one consists: sparse parts, or attributes of a wrapper subclass."""
    if _dispatching(t) is not None:
        return [] if is_fake(t) else [value for value in _held_by(t) if is_tensor(value)]
    torch = sys.modules["torch"]
    if read(t, "layout") is torch.strided:
        return []
    for parts in _PARTS:
        with torch._C._DisableTorchDispatch():  # these are operations; a mode of the user's must not see them
            found = [call(t, part) for part in parts]
        if all(part is not None for part in found):
            return found
    return []


def _held_by(t: object) -> Iterator[Any]:
    """Attributes of a wrapper; DTensor keeps its local tensor in a slot."""
    yield from list(dict.values(attributes(t)))
    for space in class_dicts(type(t)):
        for descriptor in list(space.values()):
            if type(descriptor) is MemberDescriptorType:
                try:
                    yield descriptor.__get__(t)
                except (AttributeError, TypeError):  # not set
                    continue


def _other_device(o: Any) -> str:
    if is_a(o, "mps event"):  # which keeps no device, since there is one only
        return "mps:0"
    try:
        with quiet():
            device = _own_device(attributes(o)["_untyped_storage"] if is_a(o, "typed storage") else o)
            return UNKNOWN if device is None else str(device)
    except (AttributeError, KeyError, RuntimeError):
        return UNKNOWN


def _own_device(o: Any) -> Any:
    """The ``device`` of a stream, event, generator or storage as torch's own class has it, whatever a subclass says."""
    for base in bases(type(o)):
        space = class_dicts(base)[0]
        ours = not made_by_statement(base) or module_name(base).partition(".")[0] in ("torch", "ipydevice")
        if ours and "device" in space:
            return space["device"].__get__(o, base)
    return attributes(o).get("device")


# Of dlpack.h, DLDeviceType: host, CUDA, pinned host, ROCm, managed
_DLPACK = {1: "cpu", 2: "cuda", 3: "cpu", 10: "cuda", 13: "cuda"}


def _array_device(o: Any) -> str:
    """Device of an exact array of another library in torch's spelling."""
    library = array_library(o)
    if library == "numpy":
        return "cpu"
    try:
        if library == "tensorflow.python.framework.ops":  # "/job:localhost/replica:0/task:0/device:GPU:0"
            name, _, index = str(o.device).rpartition("device:")[2].partition(":")
            kind: str | None = {"CPU": "cpu", "GPU": "cuda"}.get(name)
        else:
            number, index = o.__dlpack_device__()
            kind = _DLPACK.get(int(number))
    except Exception:  # noqa: BLE001 (a library's own trouble, such as a deleted buffer)
        return UNKNOWN
    return UNKNOWN if kind is None else kind if kind == "cpu" else f"{kind}:{index}"

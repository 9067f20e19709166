"""Facts of one tensor: metadata only, never its values, without ``__torch_function__`` of anybody.

A class with a ``__torch_dispatch__`` of its own may also answer for device and sizes
(``dispatch_device=True``); of such a class outside torch only what the storage says is read.
"""

from __future__ import annotations

import sys
from typing import Any

from ipydevice.placement.kinds import (
    array_library,
    attributes,
    class_dicts,
    is_a,
    is_tensor,
    torch_class,
)

UNKNOWN = "?"
Shape = tuple[int, ...]


def _quiet() -> Any:
    # DisableTorchFunctionSubclass would leave the modes on: under `with torch.device("cuda")` each read runs one.
    return sys.modules["torch"]._C.DisableTorchFunction()


def answers_itself(t: object) -> bool:
    """Whether a ``__torch_dispatch__`` outside torch might be asked for the tensor's device or sizes."""
    cls = type(t)
    if cls is torch_class("tensor") or cls is torch_class("parameter"):
        return False
    for space in class_dicts(cls):
        if "__torch_dispatch__" in space:
            module = space.get("__module__")
            return not (type(module) is str and module.split(".")[0] == "torch")
    return False


def read(t: object, name: str) -> Any:
    """`torch.Tensor`'s own attribute of that name, or None where the kind of tensor has none.

    The descriptor is looked up at each call because virtual GPUs replace some of them.
    """
    tensor = torch_class("tensor")
    try:
        with _quiet():
            return getattr(tensor, name).__get__(t, tensor)
    except Exception:  # noqa: BLE001 (NestedTensorImpl and others refuse with several types)
        return None


def call(t: object, name: str) -> Any:
    """What `torch.Tensor`'s own method of that name returns, or None where it refuses."""
    tensor = torch_class("tensor")
    try:
        with _quiet():
            return getattr(tensor, name)(t)
    except Exception:  # noqa: BLE001
        return None


def device_of(o: object) -> str:
    """Device of a tensor (or generator, storage, stream, array): "cpu", "cuda:0"; "?" where it cannot be told."""
    if is_tensor(o):
        if answers_itself(o):
            storage = call(o, "untyped_storage")
            return UNKNOWN if storage is None else str(storage.device)
        device = read(o, "device")
        return UNKNOWN if device is None else str(device)
    if array_library(o) is not None:
        return _array_device(o)
    if (
        is_a(o, "storage")
        or is_a(o, "typed storage")
        or is_a(o, "stream")
        or is_a(o, "cuda stream")
        or is_a(o, "generator")
    ):
        return _other_device(o)
    return UNKNOWN


def shape_of(t: object) -> Shape | None:
    """Sizes of a tensor or array; -1 for one that is not a plain number; None where it has none or hides it."""
    if array_library(t) is not None:
        shape = getattr(t, "shape", None)
    else:
        shape = None if not is_tensor(t) or is_a(t, "uninitialized") or answers_itself(t) else read(t, "shape")
    if shape is None:
        return None
    return tuple(size if type(size) is int else -1 for size in shape)


def dtype_of(t: object) -> str | None:
    """Type of the elements as users write it: "float32", "int64"; None where it cannot be told."""
    dtype = read(t, "dtype") if is_tensor(t) else getattr(t, "dtype", None) if array_library(t) is not None else None
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
    if is_fake(t) or read(t, "is_meta"):
        return 0
    storage = call(t, "untyped_storage")
    if storage is None:
        return 0
    held = int(storage.nbytes())
    if answers_itself(t):
        return held
    count, size = call(t, "numel"), call(t, "element_size")
    if type(count) is not int or type(size) is not int or read(t, "is_nested"):
        return held
    return min(held, count * size)


def storage_of(t: object) -> tuple[int, int] | None:
    """Identity and bytes of the memory a dense tensor lies in, or None where it has none of its own."""
    if not is_tensor(t) or is_a(t, "uninitialized"):
        return None
    storage = call(t, "untyped_storage")
    return None if storage is None else (int(storage._cdata), int(storage.nbytes()))


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
    module = sys.modules.get("torch._subclasses.fake_tensor")
    fake = getattr(module, "FakeTensor", None)
    return fake is not None and type.__subclasscheck__(fake, type(t))


def inner_tensors(t: object) -> list[Any]:
    """The tensors of which a composite one consists: sparse parts, or attributes of a wrapper subclass."""
    if type(t) is not torch_class("tensor") and type(t) is not torch_class("parameter") and not is_fake(t):
        return [value for value in list(attributes(t).values()) if is_tensor(value)]
    if read(t, "layout") is _strided():
        return []
    torch = sys.modules["torch"]
    for parts in (("_indices", "_values"), ("crow_indices", "col_indices", "values"),
                  ("ccol_indices", "row_indices", "values")):  # fmt: skip
        with torch._C._DisableTorchDispatch():  # these are operations; a mode of the user's must not see them
            found = [call(t, part) for part in parts]
        if all(part is not None for part in found):
            return found
    return []


def _strided() -> Any:
    return getattr(sys.modules["torch"], "strided", None)


def _other_device(o: object) -> str:
    try:
        with _quiet():
            if is_a(o, "typed storage"):
                o = attributes(o)["_untyped_storage"]
            return str(o.device)  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001
        return UNKNOWN


def _array_device(o: Any) -> str:
    """Device of an exact array of another library in torch's spelling."""
    library = array_library(o)
    if library == "numpy":
        return "cpu"
    try:
        if library == "tensorflow.python.framework.ops":
            _, _, rest = str(o.device).rpartition("device:")
            kind, _, index = rest.partition(":")
        else:
            kind, index = (str(int(part)) for part in o.__dlpack_device__())
    except Exception:  # noqa: BLE001
        return UNKNOWN
    # DLDeviceType of dlpack.h: 1 host, 2 CUDA, 3 pinned host, 10 ROCm, 13 managed
    name = {"1": "cpu", "3": "cpu", "2": "cuda", "10": "cuda", "13": "cuda", "CPU": "cpu", "GPU": "cuda"}.get(kind)
    return UNKNOWN if name is None else name if name == "cpu" else f"{name}:{index}"

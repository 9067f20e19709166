"""The tensors in what a pickle describes, each with the way to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ipydevice.checkpoint.contents import Contents, Storage, Tensor
from ipydevice.checkpoint.values import Global, Held, Made, Persistent, parts
from ipydevice.placement.members import bracketed, dotted

MOST_LOOKS = 5_000_000  # objects looked at in one pickle
_DEEP = 2_000  # characters of a path: what is nested deeper than that no one has made on purpose

# Arguments of torch/_utils.py: where shape, dtype and requires_grad stand behind the storage or tensor.
_DENSE = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_qtensor")
_PARAMETERS = ("_rebuild_parameter", "_rebuild_parameter_with_state")
_BITS = {
    "Double": ("float64", 8), "Float": ("float32", 4), "Half": ("float16", 2), "BFloat16": ("bfloat16", 2),
    "Long": ("int64", 8), "Int": ("int32", 4), "Short": ("int16", 2), "Char": ("int8", 1), "Byte": ("uint8", 1),
    "Bool": ("bool", 1), "ComplexDouble": ("complex128", 16), "ComplexFloat": ("complex64", 8),
    "QInt8": ("qint8", 1), "QUInt8": ("quint8", 1), "QInt32": ("qint32", 4), "QUInt4x2": ("quint4x2", 1),
    "QUInt2x4": ("quint2x4", 1), "Untyped": ("uint8", 1),
}  # fmt: skip
_ITEMS = dict(_BITS.values()) | {
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1, "uint16": 2, "uint32": 4, "uint64": 8, "complex32": 4,
}  # fmt: skip
# Tables of a pickled nn.Module; what they hold is reached by a dot.
_TABLES = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "module"}


class _Visit(NamedTuple):
    value: Any
    path: str
    table: bool = False  # the value is a table of a module
    argument: bool = False  # the value went into the making of what stands at `path`


def take_tensors(root: Any, contents: Contents) -> None:
    """Every tensor, nearest first, each object once; nothing is recursive, so depth does no harm."""
    seen: set[int] = set()
    queue = [_Visit(root, "")]
    looks = 0
    for visit in queue:
        value = visit.value
        if isinstance(value, (str, bytes, int, float, type(None))) or id(value) in seen:
            continue
        seen.add(id(value))
        looks += 1
        if looks > MOST_LOOKS:
            contents.cut = True
            return
        tensor = _tensor(value, visit.path)
        if tensor is not None:
            contents.add(tensor)
        elif len(visit.path) < _DEEP:
            queue += _inside(visit)
        else:
            contents.cut = True


def _inside(visit: _Visit) -> Iterator[_Visit]:
    value, path = visit.value, visit.path
    if isinstance(value, Persistent):
        yield _Visit(value.identity, path, argument=True)
    elif isinstance(value, (Held, Made)):
        if isinstance(value, Made):
            yield _Visit(value.arguments, path, argument=True)
        for index, item in enumerate(value.items):
            yield _Visit(item, path, argument=True) if visit.argument else _Visit(item, f"{path}[{index}]")
        for key, item in value.pairs:
            yield _Visit(item, path + _step(key, dot=visit.table))
        if isinstance(value, Made):
            yield from _state(value.state, path)


def _step(key: Any, *, dot: bool) -> str:
    if isinstance(key, Held) and key.kind == "tuple":
        key = tuple(key.items)
    return dotted(key) if dot and type(key) is str else bracketed(key)


def _state(state: Any, path: str) -> Iterator[_Visit]:
    """Attributes that loading would set; a module's tables stand for their contents."""
    if isinstance(state, Held) and state.kind == "dict":
        for key, item in state.pairs:
            if type(key) is str and key in _TABLES:
                yield _Visit(item, path, table=True)
            else:
                yield _Visit(item, path + _step(key, dot=True))
    else:
        yield _Visit(state, path, argument=True)


def _tensor(value: Any, path: str) -> Tensor | None:
    if not isinstance(value, Made) or not isinstance(value.maker, Global):
        return None
    maker, given = value.maker, parts(value.arguments)
    if maker.module == "torch._tensor" and len(given) > 2 and type(given[0]) is Global:
        # A subclass, or a tensor with attributes: (function, class, its arguments, state)
        return _tensor(Made(given[0], given[2]), path) if given[0].name in (*_DENSE, *_PARAMETERS) else None
    if maker.module != "torch._utils":
        return None
    if maker.name in _PARAMETERS and given:
        inner = _tensor(given[0], path)
        needs = len(given) > 1 and given[1] is True
        return None if inner is None else Tensor(
            path, "parameter", inner.device, inner.shape, inner.dtype, inner.storage, inner.bytes, needs
        )  # fmt: skip
    if maker.name == "_rebuild_meta_tensor_no_storage" and len(given) == 4:
        return Tensor(path, "tensor", "meta", _shape(given[1]), _dtype(given[0]), None, 0, given[3] is True)
    if maker.name not in _DENSE or len(given) < 3:
        return None
    held = _storage(given[0])
    if held is None:
        return None
    storage, dtype = held
    if maker.name == "_rebuild_tensor_v3" and len(given) > 6:
        dtype = _dtype(given[6])
    shape = _shape(given[2])
    needs_at = 5 if maker.name == "_rebuild_qtensor" else 4
    needs = len(given) > needs_at and given[needs_at] is True
    return Tensor(path, "tensor", storage.location, shape, dtype, storage, _bytes(shape, dtype, storage), needs)


def _storage(value: Any) -> tuple[Storage, str | None] | None:
    """``('storage', type, key, location, elements)``, as torch/serialization.py writes it."""
    if not isinstance(value, Persistent):
        return None
    given = parts(value.identity)
    if len(given) < 5 or given[0] not in ("storage", b"storage"):
        return None
    kind, key, location, count = given[1:5]
    name = kind.name.removesuffix("Storage") if isinstance(kind, Global) else ""
    dtype, size = _BITS.get(name, (None, 1))
    if type(count) is not int or count < 0:
        return None
    return Storage(_plain(key), _plain(location), count * size), dtype


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else value.decode("ascii", "replace") if isinstance(value, bytes) else "?"


def _shape(value: Any) -> tuple[int, ...] | None:
    sizes = parts(value.arguments)[0] if isinstance(value, Made) and parts(value.arguments) else value  # torch.Size
    items = parts(sizes)
    known = isinstance(sizes, Held) and all(type(size) is int and size >= 0 for size in items)
    return tuple(items) if known else None


def _dtype(value: Any) -> str | None:
    return value.name if isinstance(value, Global) and value.module == "torch" else None


def _bytes(shape: tuple[int, ...] | None, dtype: str | None, storage: Storage) -> int:
    if shape is None or dtype not in _ITEMS:
        return storage.bytes
    count = _ITEMS[dtype]
    for size in shape:
        count *= size
    return min(count, storage.bytes)

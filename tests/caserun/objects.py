"""What belongs to what: members, devices and floats of the objects that notebooks hold.

Written apart from ipydevice on purpose: the judge must not share the mistakes of the judged.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

LEAVES = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, torch.device, torch.dtype)


def members(thing: Any) -> list[Any]:
    """One level: what the object directly holds."""
    if isinstance(thing, (*LEAVES, torch.Tensor)):
        return []
    held: list[Any] = []
    if isinstance(thing, nn.Module):
        held += [*thing._parameters.values(), *thing._buffers.values(), *thing._modules.values()]
    if isinstance(thing, torch.optim.Optimizer):
        held += [s for group in thing.param_groups for p in group["params"] for s in [thing.state.get(p)]]
    if isinstance(thing, Mapping):
        held += list(thing.values())
    elif isinstance(thing, (list, tuple, set, frozenset)):
        held += list(thing)
    if isinstance(thing, functools.partial):
        held += [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, types.MethodType):
        held += [thing.__self__, thing.__func__]
    if isinstance(thing, types.FunctionType):
        held += list(inspect.getclosurevars(thing).nonlocals.values())
        held += [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
    for name in (n for kind in type(thing).__mro__ for n in getattr(kind, "__slots__", ()) if isinstance(n, str)):
        if hasattr(thing, name):
            held.append(getattr(thing, name))
    held += list(getattr(thing, "__dict__", {}).values())
    return held


def walk(thing: Any, depth: int = 6, limit: int = 3000) -> Iterator[Any]:
    """The object and all that it holds, each once."""
    seen: set[int] = set()
    level = [thing]
    for _ in range(depth):
        below: list[Any] = []
        for item in level:
            if id(item) in seen or len(seen) > limit:
                continue
            seen.add(id(item))
            yield item
            below += members(item)
        level = below


def devices(thing: Any) -> set[str]:
    """Every device found in the object."""
    found = set()
    for item in walk(thing):
        if isinstance(item, (torch.Tensor, torch.Generator)):
            found.add(str(item.device))
        elif isinstance(item, PackedSequence):
            found.add(str(item.data.device))
        elif isinstance(item, np.ndarray):
            found.add("cpu")
    return found


def same(one: Any, other: Any) -> bool:
    """The same object, or tensors over the same memory."""
    if one is other:
        return not isinstance(one, LEAVES)
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return False
    if "meta" in (one.device.type, other.device.type):
        return False
    return one.device == other.device and _memory(one) == _memory(other) != 0


def _memory(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # sparse
        return 0


def floats(expression: str, namespace: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The floating-point tensors of each global name in the expectation, by path."""
    names = {node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)}
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name in sorted(names):
        if name in namespace and not hasattr(builtins, name):
            _floats(name, namespace[name], found)
    return found


def _floats(path: str, value: Any, found: dict[str, np.ndarray[Any, Any]]) -> None:
    if isinstance(value, torch.Tensor):
        if value.is_floating_point() and value.device.type != "meta":
            dense = value.detach().to("cpu")
            found[path] = (dense if dense.layout is torch.strided else dense.to_dense()).double().numpy()
    elif isinstance(value, nn.Module):
        for name, parameter in value.named_parameters():
            _floats(f"{path}.{name}", parameter, found)
            _floats(f"{path}.{name}.grad", parameter.grad, found)
        for name, buffer in value.named_buffers():
            _floats(f"{path}.{name}", buffer, found)
    elif isinstance(value, torch.optim.Optimizer):
        for g, group in enumerate(value.param_groups):
            for p, parameter in enumerate(group["params"]):
                _floats(f"{path}.state[{g}][{p}]", dict(value.state.get(parameter, {})), found)
    elif isinstance(value, Mapping):
        for index, (key, item) in enumerate(value.items()):  # a key may be a device, or a parameter
            _floats(f"{path}[{key if isinstance(key, (str, int)) else index!r}]", item, found)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _floats(f"{path}[{index}]", item, found)


def difference(one: dict[str, np.ndarray[Any, Any]], other: dict[str, np.ndarray[Any, Any]]) -> str:
    """ "" where the floats are equal (rtol 1e-4, atol 1e-6), else the first thing that differs."""
    if one.keys() != other.keys():
        return f"other floats: {sorted(one.keys() ^ other.keys())[:3]}"
    for path, value in one.items():
        if value.shape != other[path].shape:
            return f"{path} has shape {value.shape}, on the host {other[path].shape}"
        if not np.allclose(value, other[path], rtol=1e-4, atol=1e-6, equal_nan=True):
            return f"{path} differs from the host by up to {np.abs(value - other[path]).max():.3g}"
    return ""

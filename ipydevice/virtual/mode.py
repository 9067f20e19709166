"""The one dispatch mode: check the devices of every operator call, compute on the CPU, say where the results live."""

from __future__ import annotations

import itertools
import linecache
import re
import sys
from typing import Any

import torch
from torch.utils import _python_dispatch

from ipydevice.virtual import texts
from ipydevice.virtual.cards import CPU, thread
from ipydevice.virtual.generators import check_generator
from ipydevice.virtual.rules import common_device
from ipydevice.virtual.tags import ANY, raw_tag, ruled_device, storage_of, tag, tag_storage

Tensor = torch.Tensor
Device = torch.device
_NO_DISPATCH = torch._C._disabled_torch_dispatch_impl


_Mode: Any = _python_dispatch.TorchDispatchMode


class VirtualDevices(_Mode):  # type: ignore[misc]
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # True would wrap __torch_dispatch__ in torch._disable_dynamo, whose first call imports torch._dynamo: seconds
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        try:
            return self._run(func, types, args, kwargs)
        except RuntimeError as error:
            thread.refused = str(error)  # TorchScript's interpreter drops it: see `scripts`
            raise

    def _run(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        for kind in types:  # parameters and other plain subclasses are among them
            if kind.__torch_dispatch__ is not _NO_DISPATCH:
                # A wrapper subclass unpacks itself, and we see its parts; PyTorch's fake tensors have none
                return func(*args, **(kwargs or {})) if _fake(types) else NotImplemented
        # Hot: about 60 of these make a small training step.  Hence flat, with one look at each storage.
        first: Device | None = None
        count = 0
        mixed = False
        for value in args if not kwargs else (*args, *kwargs.values()):
            if isinstance(value, Tensor):
                items: Any = (value,)
            elif isinstance(value, list | tuple):
                items = value
            else:
                continue
            for item in items:
                if isinstance(item, Tensor):
                    try:
                        device = storage_of(item)._virtual_device  # type: ignore[attr-defined]
                    except (NotImplementedError, RuntimeError):
                        device = raw_tag(item)
                    if count == 0:
                        first = device
                    elif device is not first and device != first:
                        mixed = True
                    count += 1
        kwargs = kwargs or {}
        if count == 0:
            if kwargs.get("generator") is not None and thread.factory_depth == 0:
                check_generator(kwargs["generator"], CPU)
            out = func(*args, **kwargs)
            if thread.factory_depth == 0 and not _legacy_constructor(func):
                _tag_fresh(out, ANY)
            return out
        if kwargs.get("generator") is not None:
            check_generator(kwargs["generator"], CPU if first is None or first is ANY else first)
        if mixed:
            return _mixed(func, args, kwargs)
        out = func(*args, **kwargs)
        if first is None or ("device" in kwargs and kwargs["device"] not in (None, CPU)):
            return out  # all on the host, or on its way to meta
        # what is new has no tag; views and in-place results share the storage of an argument
        if isinstance(out, Tensor):
            try:
                storage: Any = storage_of(out)
                if storage._virtual_device is None and not (args and out is args[0]):  # `set_` brings its storage along
                    tag_storage(storage, first)
            except (NotImplementedError, RuntimeError):
                tag(out, first)
        elif isinstance(out, list | tuple):
            _tag_fresh(out, _result_device(func, first))
        return out


def _fake(types: Any) -> bool:
    return any(kind.__name__ in ("FakeTensor", "FunctionalTensor") for kind in types)


def _tag_fresh(out: Any, device: Device | tuple[Device, ...]) -> None:
    outputs = out if isinstance(out, list | tuple) else (out,)
    for position, tensor in enumerate(outputs):
        if isinstance(tensor, Tensor) and raw_tag(tensor) is None:
            tag(tensor, device[position] if isinstance(device, tuple) else device)


def _result_device(func: Any, device: Device) -> Device | tuple[Device, ...]:
    if func._schema.name == "aten::_pack_padded_sequence":
        return device, CPU  # the batch sizes stay on the host: cuDNN wants them there
    return device


def _mixed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call whose tensors do not all carry the same tag."""
    if func._schema.name.startswith("aten::_foreach"):
        return _foreach(func, args, kwargs)
    device = common_device(func, args, kwargs)
    out = func(*args, **kwargs) if device is not None else _with_meta(func, args, kwargs)
    given = [item for value in (*args, *kwargs.values()) for item in _tensors(value)]
    storages = {storage._cdata: item for item in given if (storage := _storage(item)) is not None}
    if device is not None:
        results = _result_device(func, device)
        for position, tensor in enumerate(out if isinstance(out, list | tuple) else (out,)):
            if not isinstance(tensor, Tensor):
                continue
            storage = _storage(tensor)
            result = results[position] if isinstance(results, tuple) else results
            known = storage is not None and storage._cdata in storages
            if raw_tag(tensor) is ANY or not (known or any(tensor is item for item in given)):
                tag(tensor, result)
    return out


def _with_meta(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """PyTorch's Python checks for meta tensors name a device of an intermediate result that carries no tag yet."""
    try:
        return func(*args, **kwargs)
    except RuntimeError as error:
        places = [ruled_device(tensor) for value in (*args, *kwargs.values()) for tensor in _tensors(value)]
        card = next((place for place in places if place is not None and place.type == "cuda"), None)
        text = str(error)
        if card is not None and text.startswith("Tensor on device ") and CPU not in places:
            error.args = (text.replace("device cpu", f"device {card}"),)
        raise


_LEGACY_CALL = re.compile(r"^(\w+\.)*\w*Tensor\(")


def _legacy_constructor(func: Any) -> bool:
    """Whether the user's code is just calling ``torch.Tensor(2, 3)``, which no replaced entry point sees.

    The class cannot be given another ``__new__`` without leaving a trace, so the line that runs is read.
    """
    if func._schema.name != "aten::empty":
        return False
    frame = sys._getframe(3)
    positions = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    if positions is None or positions[0] is None or positions[2] is None:
        return False
    line = linecache.getline(frame.f_code.co_filename, positions[0], frame.f_globals)
    return _LEGACY_CALL.match(line.encode()[positions[2] :].decode(errors="replace")) is not None


def _storage(tensor: Tensor) -> Any:
    try:
        return storage_of(tensor)
    except (NotImplementedError, RuntimeError):
        return None


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [item for item in value if isinstance(item, Tensor)] if isinstance(value, list | tuple) else []


def _foreach(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The lists may span devices, each position must not: the slow path of ForeachOpsKernels.cpp, one by one."""
    values = (*args, *kwargs.values())
    lists = [value for value in values if isinstance(value, list | tuple) and value and isinstance(value[0], Tensor)]
    if "copy" not in func._schema.name:
        for position, row in enumerate(zip(*lists, strict=False)):
            error = _row_error(row)
            if error is not None:
                if position and func._schema.name.endswith("_"):
                    _before(func, args, kwargs, position, len(lists[0]))
                raise error
    out = func(*args, **kwargs)
    if isinstance(out, list | tuple):
        for tensor, source in zip(out, lists[0], strict=False):
            if isinstance(tensor, Tensor) and raw_tag(tensor) is None:
                place = raw_tag(source)
                if place is not None:
                    tag(tensor, place)
    return out


def _row_error(row: tuple[Any, ...]) -> RuntimeError | None:
    devices = [
        device
        for tensor in row
        if (device := ruled_device(tensor)) is not None and not (tensor.dim() == 0 and device == CPU)
    ]
    if all(device == devices[0] for device in devices):
        return None
    common = next(device for device in devices if device != CPU)
    return texts.two_devices(common, next(device for device in devices if device != common))


def _before(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], position: int, length: int) -> None:
    """An in-place call has done its work on the positions before the one that fails."""

    def cut(value: Any) -> Any:
        return value[:position] if isinstance(value, list | tuple) and len(value) == length else value

    func(*map(cut, args), **{name: cut(value) for name, value in kwargs.items()})

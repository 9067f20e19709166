"""Tensors that are made or used anywhere but on the device expected."""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import torch

from ipydevice import placement
from ipydevice.devicecheck import callsite
from ipydevice.devicecheck.operands import tensors_of
from ipydevice.diagnose.frames import Sources
from ipydevice.report import Elsewhere


@dataclass(eq=False, slots=True)
class _Line:
    code: CodeType
    line: int
    role: Any
    call: str
    device: str
    shape: tuple[int, ...] | None
    dtype: str | None
    count: int = 0


class ElsewhereLog:
    """One row for each line and way of use; numbers on the host are no tensors elsewhere."""

    def __init__(self, expected: str) -> None:
        self.expected = expected
        self.expected_devices: set[torch.device] = set()  # of tensors met where they should be
        self._lines: dict[Any, _Line] = {}

    def note(self, func: Any, args: Any, kwargs: dict[str, Any], result: Any, caller: FrameType | None) -> None:
        """One call has worked. A result elsewhere is "made" where nothing that it came from was there."""
        name = getattr(func, "__name__", "")
        if name in ("__get__", "__set__"):  # reading `x.device` or `x.shape` is no use of it
            return
        used = next((tensor for tensor in tensors_of([args, kwargs]) if self._strays(tensor)), None)
        made = next((tensor for tensor in tensors_of(result) if self._strays(tensor)), None)
        if used is not None and name in _LEAVING:
            return
        if used is not None:
            self._count("used", name, used, caller)
        elif made is not None:
            self._count("made", name, made, caller)

    def _strays(self, tensor: Any) -> bool:
        where = placement.device_of(tensor)
        if where == self.expected or where.split(":")[0] == self.expected:
            if type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter:  # no class of the user's is asked
                self.expected_devices.add(tensor.device)
            return False
        return placement.shape_of(tensor) != ()

    def _count(self, role: str, name: str, tensor: Any, caller: FrameType | None) -> None:
        frame = callsite.nearest(caller)
        if frame is None:
            return
        device = placement.device_of(tensor)
        key = frame.f_code, frame.f_lineno, role, device
        line = self._lines.get(key)
        if line is None:
            shape, dtype = placement.shape_of(tensor), placement.dtype_of(tensor)
            line = self._lines[key] = _Line(frame.f_code, frame.f_lineno, role, name, device, shape, dtype)
        line.count += 1

    def rows(self, sources: Sources) -> tuple[Elsewhere, ...]:
        """In the order met; a line that both makes and uses one is told as making it."""
        making = {(line.code, line.line, line.device) for line in self._lines.values() if line.role == "made"}
        return tuple(
            Elsewhere(
                callsite.place_of(each.code, each.line, sources),
                each.role,
                each.call,
                each.device,
                each.count,
                each.shape,
                each.dtype,
            )
            for each in self._lines.values()
            if each.role == "made" or (each.code, each.line, each.device) not in making
        )


# Calls that take a tensor away from there, or only look at it.
_LEAVING = frozenset(("to", "cuda", "cpu", "pin_memory", "is_pinned", "size", "dim", "__len__", "__repr__", "copy_",
                      "numpy", "__array__", "tolist", "type_as", "numel", "is_floating_point", "stride",
                      "__format__", "is_contiguous", "requires_grad_", "data_ptr", "untyped_storage"))  # fmt: skip

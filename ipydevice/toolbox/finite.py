"""The first module or call that makes nan or inf."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, resolve_name

from ipydevice import placement
from ipydevice.devicecheck import callsite
from ipydevice.devicecheck.operands import tensors_of
from ipydevice.show import quantities
from ipydevice.toolbox.callers import place_of
from ipydevice.toolbox.troubles import need_module

# Their results are memory as it was found.
_UNSET = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "resize_", "to_empty")


class nan_watch:  # noqa: N801  (used like a function: `with nan_watch(model):`)
    """``with nan_watch(model):`` raises at the first call that makes nan or inf out of finite numbers.

    The error names the call, the line, the module of `model` in which it ran, and its inputs. An inf that the code
    asks for (``masked_fill(mask, float("-inf"))``) and what merely passes one on are left alone. In ``backward()``
    PyTorch's own anomaly detection looks for nan and shows where the forward call stood. Reads the result of every
    call, which makes the host wait: for looking, not for training.

    Args:
        model: gives modules their names; without it they are called by their classes.

    Raises:
        FloatingPointError: from the call that made them; in backward RuntimeError, as PyTorch raises it.
        TypeError: `model` is no module.
    """

    def __init__(self, model: Any = None) -> None:
        if model is not None:
            need_module(model, "nan_watch(model)")
        self._names = {} if model is None else {id(module): name for name, module in model.named_modules() if name}
        self._model = model  # keeps the ids
        self._handles: list[Any] = []
        self._mode = _Finite(self)
        self.running: list[str] = []  # modules that a call is inside of, the outermost first

    def __enter__(self) -> nan_watch:
        hooks = torch.nn.modules.module
        self._handles = [
            hooks.register_module_forward_pre_hook(self._begin),
            hooks.register_module_forward_hook(self._end, always_call=True),
        ]
        self._anomaly = torch.autograd.set_detect_anomaly(True)
        self._mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._mode.__exit__(kind, value, traceback)  # type: ignore[no-untyped-call]
        self._anomaly.__exit__()  # set_detect_anomaly restores what was there before
        for handle in self._handles:
            handle.remove()
        self.running.clear()

    def _begin(self, module: Any, args: Any) -> None:
        self.running.append(self._names.get(id(module)) or type(module).__name__)

    def _end(self, module: Any, args: Any, output: Any) -> None:
        if self.running:
            self.running.pop()


class _Finite(TorchFunctionMode):
    def __init__(self, watch: nan_watch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = [*_floating((args, kwargs))]
        name = getattr(func, "__name__", "")
        # what is written in place is no longer what it was afterwards
        before = _bad(given) if _writes(name) or "out" in (kwargs or {}) else None
        result = func(*args, **(kwargs or {}))
        if (
            not given
            or name in _UNSET
            or name.startswith("__get")
            or not isinstance(result, torch.Tensor | tuple | list)
        ):
            return result
        made = _bad(_floating(result))
        if made:
            made -= (_bad(given) if before is None else before) | _asked_for((args, kwargs))
            if "nan" in made or ("inf" in made and "nan" not in _bad(given)):
                raise FloatingPointError(self._told(func, made, given, result, sys._getframe(1)))
        return result

    def _told(self, func: Any, made: set[str], given: list[Any], result: Any, frame: FrameType | None) -> str:
        running = self._watch.running
        inside = f" in {running[-1]}" if running else ""
        user = callsite.nearest(frame)
        where = f" ({place_of(user)})" if user is not None else ""
        count = sum(int((~torch.isfinite(t)).sum()) for t in _floating(result))
        total = sum(t.numel() for t in _floating(result))
        inputs = "; ".join(_summary(t) for t in given[:3])
        name = resolve_name(func) or getattr(func, "__name__", str(func))
        return (
            f"{name}{inside}{where} made {' and '.join(sorted(made))} out of finite numbers: "
            f"{count:,} of {total:,} values. Its inputs: {inputs}"
        )


def _writes(name: str) -> bool:
    """Whether a method of this name changes its tensor: ``log_``, ``__itruediv__``."""
    return name.startswith("__i") if name.endswith("__") else name.endswith("_")


def _summary(t: Any) -> str:
    with torch.no_grad():
        low, high = (float(t.min()), float(t.max())) if t.numel() else (math.nan, math.nan)
    what = quantities.typed_shape(placement.dtype_of(t), placement.shape_of(t))
    return f"{what} on {placement.device_of(t)} from {low:g} to {high:g}"


def _floating(value: Any) -> Iterator[Any]:
    return (t for t in tensors_of(value) if (t.is_floating_point() or t.is_complex()) and t.device.type != "meta")


def _bad(tensors: Any) -> set[str]:
    found: set[str] = set()
    with torch.no_grad():
        for t in tensors:
            if not bool(torch.isfinite(t).all()):
                found.update(word for word, test in (("nan", torch.isnan), ("inf", torch.isinf)) if bool(test(t).any()))
    return found


def _asked_for(value: Any) -> set[str]:
    """nan or inf that stands among the arguments as a number."""
    if isinstance(value, float):
        return {"nan"} if math.isnan(value) else {"inf"} if math.isinf(value) else set()
    if isinstance(value, dict):
        value = tuple(value.values())
    return set().union(*map(_asked_for, value)) if isinstance(value, tuple | list) else set()

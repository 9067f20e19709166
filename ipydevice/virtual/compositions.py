"""Functions that PyTorch composes of others, and whose own checks come before those of the parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ipydevice.virtual import texts
from ipydevice.virtual.patches import Patches, stands_in
from ipydevice.virtual.tags import device_of, on_card

Tensor = torch.Tensor
Check = Callable[..., None]


def _tensors(values: tuple[Any, ...]) -> list[Tensor]:
    """The tensors of ``f(a, b)`` or of ``f([a, b])``."""
    listed = values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values
    return [value for value in listed if isinstance(value, Tensor)]


def _block_diag(*values: Any) -> None:
    """native/TensorShape.cpp"""
    tensors = _tensors(values)
    for position, tensor in enumerate(tensors):
        if device_of(tensor) != device_of(tensors[0]):
            raise RuntimeError(
                "torch.block_diag: input tensors must all be on the same device. Input 0 is on device "
                f"{device_of(tensors[0])} and input {position} is on device {device_of(tensor)}"
            )


def _meshgrid(*values: Any, **options: Any) -> None:
    """native/TensorShape.cpp"""
    tensors = _tensors(values)
    if any(device_of(tensor) != device_of(tensors[0]) for tensor in tensors):
        raise RuntimeError("torch.meshgrid expects all tensors to have the same device")


def _quantile(x: Tensor, q: Any, *args: Any, **options: Any) -> None:
    """native/Sorting.cpp, quantile_checks"""
    if isinstance(q, Tensor) and device_of(q) != device_of(x):
        raise RuntimeError("quantile() q tensor must be on the same device as the input tensor")


def _take_along_dim(x: Tensor, indices: Tensor, *args: Any, **options: Any) -> None:
    """native/TensorAdvancedIndexing.cpp, TensorUtils.cpp: checkDevice"""
    if isinstance(indices, Tensor) and device_of(indices) != device_of(x):
        raise RuntimeError(
            f"Expected tensor to have {device_of(x)} Device, but got tensor with {device_of(indices)} Device "
            "(while checking arguments for torch.take_along_dim():)"
        )


def _tensor_split(x: Tensor, indices_or_sections: Any, *args: Any, **options: Any) -> None:
    """native/TensorShape.cpp"""
    if isinstance(indices_or_sections, Tensor) and device_of(indices_or_sections).type != "cpu":
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on "
            f"{device_of(indices_or_sections)}"
        )


def _take(x: Tensor, index: Tensor, *, out: Any = None) -> None:
    """native/TensorAdvancedIndexing.cpp, take_out"""
    if device_of(index) != device_of(x):
        raise RuntimeError(
            f"take(): self, index and out expected to be in the same device, but got self.device = {device_of(x)}, "
            f"index.device = {device_of(index)}, and out.device = {device_of(x)}"
        )


def _weight_norm(v: Tensor, g: Tensor, *args: Any) -> None:
    """native/WeightNorm.cpp"""
    if device_of(v) != device_of(g):
        raise RuntimeError(
            f"weight_norm: expected v_in and g_in to be on the same device, but v_in is on {device_of(v)} and g_in is "
            f"on {device_of(g)}"
        )


def _cholesky_solve(b: Tensor, factor: Tensor, *args: Any, **options: Any) -> None:
    """native/LinearAlgebraUtils.h, linearSolveCheckInputs"""
    if device_of(b) != device_of(factor):
        raise RuntimeError(
            f"Expected b and A to be on the same device, but found b on {device_of(b)} and A on {device_of(factor)} "
            "instead."
        )


def _gradient(x: Tensor, *args: Any, spacing: Any = None, **options: Any) -> None:
    """native/ReduceOps.cpp, pre_check_gradient"""
    for each in spacing if isinstance(spacing, list | tuple) else ():
        if isinstance(each, Tensor) and device_of(each) != device_of(x):
            raise RuntimeError(
                "torch.gradient expected each tensor to be on the same device, but got devices "
                f"{device_of(x)} and {device_of(each)}!"
            )


def _histogram(x: Tensor, bins: Any = 100, **options: Any) -> None:
    """native_functions.yaml: no kernel for CUDA"""
    given = isinstance(bins, Tensor)
    _need_host((x, bins) if given else (x,), "aten::histogram" + (".bins_tensor" if given else ".bin_ct"))


def _histogramdd(x: Tensor, bins: Any, **options: Any) -> None:
    """native_functions.yaml: no kernel for CUDA"""
    edges = _tensors((bins,))
    _need_host((x, *edges), "aten::_histogramdd_from_bin_tensors" if edges else "aten::_histogramdd_bin_edges")


def _need_host(tensors: tuple[Tensor, ...], operator: str) -> None:
    for tensor in tensors:
        if on_card(tensor):
            raise texts.no_kernel(operator, device_of(tensor))


def _checked(original: Callable[..., Any], check: Check) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        check(*args, **kwargs)
        return original(*args, **kwargs)

    return stands_in(original, run)


_FUNCTIONS: dict[str, Check] = {
    "block_diag": _block_diag,
    "meshgrid": _meshgrid,
    "quantile": _quantile,
    "nanquantile": _quantile,
    "take_along_dim": _take_along_dim,
    "take": _take,
    "tensor_split": _tensor_split,
    "_weight_norm": _weight_norm,
    "cholesky_solve": _cholesky_solve,
    "gradient": _gradient,
    "histogram": _histogram,
    "histogramdd": _histogramdd,
}
_METHODS = ("quantile", "nanquantile", "take_along_dim", "take", "tensor_split", "cholesky_solve", "histogram")


def install(patches: Patches) -> None:
    for name, check in _FUNCTIONS.items():
        patches.replace(torch, name, _checked(getattr(torch, name), check))
    for name in _METHODS:
        patches.replace(Tensor, name, _checked(getattr(Tensor, name), _FUNCTIONS[name]))

"""PyTorch's own words (2.8 and later; where they come from stands beside each)."""

from __future__ import annotations

import torch

from ipydevice.virtual.tags import device_of

Tensor = torch.Tensor
_NAMES_THE_DEVICE = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 8)  # the sentence was reworded then


def two_devices(first: torch.device, second: torch.device) -> RuntimeError:
    """TensorIterator.cpp, and everything that borrows its sentence."""
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!"
    )


def common_check(argument: str, device: torch.device, expected: torch.device, method: str) -> RuntimeError:
    """ATen/core/adaption.cpp: `common_device_check_failure`, called by every generated wrapper."""
    if not _NAMES_THE_DEVICE:
        return RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {expected} and {device}! "
            f"(when checking argument for argument {argument} in method {method})"
        )
    return RuntimeError(
        f"Expected all tensors to be on the same device, but got {argument} is on {device}, different from other "
        f"tensors on {expected} (when checking argument in method {method})"
    )


def wrong_index(indexed: torch.device) -> RuntimeError:
    """TensorAdvancedIndexing / IndexingUtils.h"""
    return RuntimeError(f"indices should be either on cpu or on the same device as the indexed tensor ({indexed})")


def wrong_mask(mask: torch.device, self: torch.device) -> RuntimeError:
    """native/cuda/Indexing.cu and native/TensorAdvancedIndexing.cpp: masked_fill"""
    if self.type == "cpu":
        return RuntimeError("masked_fill_: Expected inputs to be on same device")
    return RuntimeError(f"expected self and mask to be on the same device, but got mask on {mask} and self on {self}")


def wrong_generator(op: torch.device, generator: torch.device) -> RuntimeError:
    """ATen/core/Generator.h: check_generator"""
    return RuntimeError(f"Expected a '{op.type}' device type for generator but found '{generator.type}'")


def no_kernel(operator: str, device: torch.device) -> NotImplementedError:
    """OperatorEntry.cpp: the dispatcher went where a tensor is, and the operator has no kernel there"""
    return NotImplementedError(
        f"Could not run '{operator}' with arguments from the '{device.type.upper()}' backend. This could be because "
        "the operator doesn't exist for this backend, or was omitted during the selective/custom build process (if "
        "using custom build). If you are a Facebook employee using PyTorch on mobile, please visit "
        "https://fburl.com/ptmfixes for possible resolutions. "
        f"'{operator}' is only available for these backends: [CPU]."
    )


SCALARS = {
    torch.float32: "Float",
    torch.float64: "Double",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.uint8: "Byte",
    torch.int8: "Char",
    torch.int16: "Short",
    torch.int32: "Int",
    torch.int64: "Long",
    torch.bool: "Bool",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
}


def cpp_type_name(tensor: Tensor, device: torch.device | None = None) -> str:
    """What C++ messages say: as `type_name`, but ``CUDABFloat16Type`` for the types that came later."""
    if tensor.dtype is torch.bfloat16 or tensor.dtype.is_complex:
        backend = (device or device_of(tensor)).type.upper()
        return f"{backend}{SCALARS[tensor.dtype]}Type"
    return type_name(tensor, device)


def type_name(tensor: Tensor, device: torch.device | None = None) -> str:
    """``torch.cuda.FloatTensor``: what `Tensor.type()` says."""
    where = (device or device_of(tensor)).type
    prefix = "torch." if where == "cpu" else f"torch.{where}."
    if tensor.layout is torch.sparse_coo:
        prefix += "sparse."
    return f"{prefix}{SCALARS.get(tensor.dtype, str(tensor.dtype).removeprefix('torch.'))}Tensor"

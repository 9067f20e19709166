"""What a CUDA build does with a call whose tensors live on several devices: the common device, or its error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from ipydevice.virtual import texts
from ipydevice.virtual.cards import CPU
from ipydevice.virtual.tags import ruled_device
from ipydevice.virtual.wrappers import Wrapper, wrapper

Tensor = torch.Tensor
Device = torch.device


class Operand(NamedTuple):
    argument: str
    tensor: Tensor
    device: Device


class Call(NamedTuple):
    """One operator call, its tensors in the order that CUDA checks them."""

    wrapper: Wrapper
    args: tuple[Any, ...]
    named: dict[str, Any]
    operands: list[Operand]


def common_device(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Device | None:
    """The device that the results of the call live on.

    None: nothing that a rule could speak of (no tensor of the call has a place yet, or one is on ``meta``, where
    PyTorch's own checks in Python speak).

    Raises:
        RuntimeError: PyTorch's error, in its words, where a CUDA build refuses the call.
    """
    check = wrapper(func)
    named = {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)}
    named.update(kwargs)
    operands = list(_operands(check, named))
    if not operands or any(operand.device.type == "meta" for operand in operands):
        return None
    call = Call(check, args, named, operands)
    special = _SPECIAL.get(check.name.partition(".")[0])
    return special(call) if special is not None else _checked(call)


def _operands(check: Wrapper, named: dict[str, Any]) -> Iterator[Operand]:
    for argument in check.order:
        if argument in _ON_HOST:
            continue
        value = named.get(argument)
        for tensor in value if isinstance(value, list | tuple) else (value,):
            if isinstance(tensor, Tensor):
                device = ruled_device(tensor)
                if device is not None:
                    yield Operand(argument, tensor, device)


_ON_HOST = frozenset({"batch_sizes", "lengths", "input_lengths", "target_lengths"})
"""Arguments that belong on the host, whatever the rest is on."""


def _checked(call: Call) -> Device:
    method = call.wrapper.method
    if method is None:
        return _iterated(call)
    if any(operand.tensor.layout is torch.sparse_coo for operand in call.operands):
        base, _, overload = call.wrapper.name.partition(".")
        method = f"wrapper_SparseCUDA_{overload}_{base}"  # kernels for sparse tensors are never structured
    return _same(call.operands, method)


def _same(operands: list[Operand], method: str) -> Device:
    """The common check: the first argument is the reference, the first that differs is named."""
    expected = operands[0].device
    for argument, _, device in operands:
        if device != expected:
            raise texts.common_check(argument, device, expected, method)
    return expected


def _iterated(call: Call) -> Device:
    """TensorIterator.cpp, compute_types: the first device that is not the host counts; host scalars are let in."""
    common = next((operand.device for operand in call.operands if operand.device.type != "cpu"), CPU)
    name = call.wrapper.name.partition(".")[0]
    inplace = name.endswith("_")
    scalars = 0
    for argument, tensor, device in call.operands:
        if device == common:
            continue
        is_output = argument == "out" or (argument == "self" and inplace)
        if device != CPU or tensor.dim() or is_output:
            raise texts.two_devices(common, device)
        scalars += 1
        if scalars > 1 and name not in _SCALARS_MOVED:
            raise RuntimeError("Trying to pass too many CPU scalars to non-CPU kernel!")
    return common


_SCALARS_MOVED = frozenset({"where"})  # TensorCompare.cpp moves 0-dim host tensors before the iterator sees them


def _first(call: Call) -> Device:
    """Copies and shape look-ups: any devices will do, the result stays with the first argument."""
    return (ruled_device(call.args[0]) if isinstance(call.args[0], Tensor) else None) or call.operands[0].device


def _set_storage(call: Call) -> Device:
    """native/Resize.h, checkSetStorage"""
    self, source = ruled_device(call.args[0]), ruled_device(call.args[1])
    if self is not None and source is not None and self != source:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{self}" to a storage on different device "{source}". '
            " This is no longer allowed; the devices must match."
        )
    return self or source or CPU


def _index(call: Call) -> Device:
    indexed, indices = call.args[0], call.args[1]
    device = ruled_device(indexed) or call.operands[0].device
    for index in indices:
        if index is not None and ruled_device(index) not in (None, CPU, device):
            raise texts.wrong_index(device)
    if len(call.args) > 2:
        values = call.args[2]
        place = ruled_device(values)
        if place not in (None, device) and not (place == CPU and values.dim() == 0):
            assert place is not None
            raise texts.two_devices(*((device, place) if device.type != "cpu" else (place, device)))
    return device


def _masked_fill(call: Call) -> Device:
    self, mask = ruled_device(call.args[0]), ruled_device(call.args[1])
    if self is not None and mask is not None and self != mask:
        raise texts.wrong_mask(mask, self)
    value = call.args[2]
    if isinstance(value, Tensor) and value.dim() and ruled_device(value) not in (None, self):
        raise texts.two_devices(self or CPU, ruled_device(value) or CPU)
    return self or mask or CPU


def _convolution(call: Call) -> Device:
    """native/Convolution.cpp: the input alone selects the kernel, and some kernels compare types before devices."""
    _, x, place = call.operands[0]
    stray = next((operand for operand in call.operands[1:] if operand.device != place), None)
    if stray is None:
        return place
    kernel = _host_kernel(call) if place.type == "cpu" else _card_kernel(call, x)
    method = _UNTYPED_KERNELS.get(kernel)
    if method is not None:
        raise texts.common_check(stray.argument, stray.device, place, method)
    if kernel == "Slow3d":
        raise texts.no_kernel("aten::slow_conv3d_forward", stray.device)
    # check_input_same_type_as_parameters: a type tells card from host, not one card from another
    given, theirs = texts.cpp_type_name(x, place), texts.cpp_type_name(stray.tensor, stray.device)
    types = f"Input type ({given}) and {stray.argument} type ({theirs}) should be the same"
    if place.type == "cpu":
        raise RuntimeError(f"{types} or input should be a MKLDNN tensor and {stray.argument} is a dense tensor")
    if stray.device.type != place.type:
        raise RuntimeError(types)
    if stray.argument == "bias":  # cuDNN's result, and then an in-place sum
        raise texts.two_devices(place, stray.device)
    transposed = "_transpose" if call.named["transposed"] else ""
    raise texts.common_check(stray.argument, stray.device, place, f"wrapper_CUDA__cudnn_convolution{transposed}")


# Kernels that nothing but the common check guards; every other one compares types first.
_UNTYPED_KERNELS = {
    "Slow2d": "wrapper_CUDA___slow_conv2d_forward",
    "SlowDilated2d": "wrapper_CUDA__slow_conv_dilated2d",
    "SlowDilated3d": "wrapper_CUDA__slow_conv_dilated3d",
    "SlowTranspose2d": "wrapper_CUDA_slow_conv_transpose2d",
    "SlowTranspose3d": "wrapper_CUDA__slow_conv_transpose3d",
    "CudaDepthwise2d": "wrapper_CUDA___conv_depthwise2d",
    "CudaDepthwise3d": "wrapper_CUDA__conv_depthwise3d",
}


def _host_kernel(call: Call) -> str:
    """What PyTorch itself selects for an input on the host."""
    options = [call.named[name] for name in _CONVOLUTION]
    return str(torch._C._select_conv_backend(*options)).rpartition(".")[2]


_CONVOLUTION = (
    *("input", "weight", "bias", "stride", "padding", "dilation"),
    *("transposed", "output_padding", "groups"),
)


def _card_kernel(call: Call, x: Tensor) -> str:
    """ConvParams::is_depthwise and use_cudnn_depthwise: PyTorch's own kernel takes contiguous float32 images."""
    groups = call.named["groups"]
    depthwise = groups > 1 and x.shape[-call.named["weight"].dim() + 1] == groups and not call.named["transposed"]
    if not depthwise or not x.is_contiguous() or x.dtype is torch.float16 or not torch.backends.cudnn.enabled:
        return "Cudnn"
    return "CudaDepthwise3d" if x.dim() == 5 else "CudaDepthwise2d"


def _named(method: str, **names: str) -> Callable[[Call], Device]:
    """An operator that a CUDA build runs under another wrapper; `names` renames its arguments."""

    def check(call: Call) -> Device:
        renamed = [
            operand._replace(argument=names.get(operand.argument, operand.argument)) for operand in call.operands
        ]
        return _same(renamed, method)

    return check


def _matrix_vector(call: Call) -> Device:
    """Blas.cpp: `mv` makes its result where the vector is and calls addmv_ on it."""
    matrix, vector = call.operands[0], call.operands[-1]
    if matrix.device != vector.device:
        raise texts.common_check("mat", matrix.device, vector.device, "wrapper_CUDA_addmv_")
    return matrix.device


def _sparse_mm(call: Call) -> Device:
    """native/sparse/SparseTensorMath.cpp: an addmm onto zeros that are made where the dense matrix is."""
    sparse, dense = call.operands[-2:]
    if sparse.device != dense.device:
        raise texts.common_check("mat1", sparse.device, dense.device, "wrapper_SparseCUDA__addmm")
    return dense.device


def _batch_norm(call: Call) -> Device:
    """Normalization.cpp, _batch_norm_impl_index: cuDNN takes images on a card, the native kernel all else."""
    _, x, place = call.operands[0]
    cudnn = (
        place.type == "cuda"
        and x.dim() >= 3
        and x.dtype is not torch.bfloat16
        and all(call.named.get(name) is not None for name in ("weight", "bias"))
    )
    return _same(call.operands, "wrapper_CUDA__cudnn_batch_norm" if cudnn else "wrapper_CUDA__native_batch_norm")


def _ctc_loss(call: Call) -> Device:
    """cuDNN wants concatenated int32 targets on the host; all others belong beside the probabilities."""
    targets = call.args[1]
    if targets.dtype is torch.int32 and targets.dim() == 1 and ruled_device(targets) == CPU:
        return call.operands[0].device
    return _checked(call)


def _trilinear(call: Call) -> Device:
    """native/Linear.cpp: two batched products, of the first two and then with the third"""
    first, *others = call.operands
    for _, _, device in others:
        if device != first.device:
            raise texts.common_check("mat2", device, first.device, "wrapper_CUDA_bmm")
    return first.device


def _sparse_coo(call: Call) -> Device:
    """c10/SparseTensorImpl.cpp, set_indices_and_values_unsafe"""
    given = {operand.argument: operand.device for operand in call.operands}
    indices, values = given.get("indices", call.operands[0].device), given.get("values", call.operands[-1].device)
    if indices.type != values.type:
        raise RuntimeError(
            f"backend of indices ({indices.type.upper()}) must match backend of values ({values.type.upper()})"
        )
    if indices != values:
        raise RuntimeError(f"device of indices ({indices.index}) must match device of values ({values.index})")
    return values


_COPIES = (
    *("copy_", "copy", "_to_copy", "detach", "lift_fresh", "record_stream"),
    *("select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter"),  # a clone, and a copy_ into it
    *("is_same_size", "_has_same_storage_numel", "expand_as", "view_as", "reshape_as", "resize_as_"),
)
_INDEXING = ("index", "_unsafe_index", "index_put_", "index_put", "_index_put_impl_", "_unsafe_index_put")

_SPECIAL: dict[str, Callable[[Call], Device]] = {
    **dict.fromkeys(_COPIES, _first),
    **dict.fromkeys(_INDEXING, _index),
    **dict.fromkeys(("masked_fill", "masked_fill_"), _masked_fill),
    "convolution": _convolution,
    "embedding": _named("wrapper_CUDA__index_select", weight="self", indices="index"),
    "stack": _named("wrapper_CUDA_cat"),
    "masked_scatter": _named("wrapper_CUDA__masked_scatter_"),
    "linalg_lstsq": _named("wrapper_CUDA_out_linalg_lstsq_out"),
    "_trilinear": _trilinear,
    "_sparse_coo_tensor_with_dims_and_tensors": _sparse_coo,
    "mv": _matrix_vector,
    "native_batch_norm": _batch_norm,
    **dict.fromkeys(("_sparse_mm", "_sparse_addmm"), _sparse_mm),
    "_ctc_loss": _ctc_loss,
    "set_": _set_storage,
}

"""What virtual cards cannot do, and the one clear sentence that says so."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from ipydevice.virtual import cards
from ipydevice.virtual.patches import Patches, stands_in
from ipydevice.virtual.tags import device_of, on_card

_warned: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, UserWarning, stacklevel=3)


def _compile(model: Any = None, **options: Any) -> Any:
    """``torch.compile`` hands back what it is given: eager code, with eager's device errors."""
    _warn_once("virtual GPUs cannot trace: torch.compile runs this code eagerly, with the same results, not faster")
    if options.get("disable") is not True and model is None:
        return lambda function: function
    return (lambda function: function) if model is None else model


def _refuses(original: Callable[..., Any], text: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(text)

    return refuse


_TRACE = (
    "virtual GPUs cannot be traced: torch.jit.trace would record CPU operators. Trace outside of virtual_gpus(), "
    "or on a machine with a GPU; torch.jit.script works here"
)
_EXPORT = (
    "virtual GPUs cannot be traced: torch.export would record CPU operators. Export outside of virtual_gpus(), "
    "or on a machine with a GPU"
)
_NCCL = (
    "virtual GPUs have no NCCL: one process stands in for all cards. Use backend='gloo' with CPU tensors to rehearse "
    "collectives, or DataParallel to rehearse several cards in one process"
)
_GRAPH = "virtual GPUs cannot capture CUDA graphs: nothing runs asynchronously here. Call the function directly"


def _dlpack(original: Callable[..., Any]) -> Callable[..., Any]:
    def export(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if on_card(self):
            raise BufferError(
                f"a tensor on virtual {device_of(self)} has no GPU memory that another library could read through "
                "DLPack: pass tensor.cpu() instead"
            )
        return original(self, *args, **kwargs)

    return export


def _array_interface(self: torch.Tensor) -> Any:
    if on_card(self):
        raise AttributeError(
            f"a tensor on virtual {device_of(self)} has no GPU memory that another library could read: "
            "pass tensor.cpu() instead"
        )
    raise AttributeError(
        f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data is required use "
        "tensor.cuda() to copy tensor to device memory."
    )


def _init_process_group(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def init(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        if cards.process.count and "nccl" in str(backend).lower():
            raise RuntimeError(_NCCL)
        return original(backend, *args, **kwargs)

    return init


def _run_eagerly(patches: Patches) -> None:
    """What was compiled before runs eagerly as well: `torch.compiler.set_stance("force_eager")` (torch 2.6)."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")  # without it nothing has been compiled yet
    if dynamo is not None and hasattr(dynamo, "_stance"):
        patches.replace(dynamo, "_stance", dynamo.DynamoStance("force_eager"))


class CUDAGraph:
    def __new__(cls, *args: Any, **kwargs: Any) -> CUDAGraph:
        raise RuntimeError(_GRAPH)


def _share_cuda(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        "a tensor on a virtual GPU cannot be sent to another process: it is memory of this one. "
        "Send tensor.cpu() instead"
    )


def install(patches: Patches) -> None:
    _run_eagerly(patches)
    patches.replace(torch, "compile", functools.wraps(torch.compile)(_compile))
    patches.replace(torch.jit, "trace", _refuses(torch.jit.trace, _TRACE))
    patches.replace(torch.jit, "trace_module", _refuses(torch.jit.trace_module, _TRACE))
    if "export" in vars(torch):
        patches.replace(torch.export, "export", _refuses(torch.export.export, _EXPORT))
    tensor = torch.Tensor
    patches.replace(tensor, "__dlpack__", stands_in(tensor.__dlpack__, _dlpack(tensor.__dlpack__)))
    patches.replace(tensor, "__cuda_array_interface__", property(_array_interface))
    for module in (torch, torch.utils.dlpack):
        to_dlpack = vars(module)["to_dlpack"]
        patches.replace(module, "to_dlpack", functools.wraps(to_dlpack)(_dlpack(to_dlpack)))
    patches.replace(torch.UntypedStorage, "_share_cuda_", _share_cuda)
    patches.replace(torch.cuda, "CUDAGraph", CUDAGraph)
    patches.replace(torch.cuda, "graph", CUDAGraph)
    patches.replace(torch.cuda, "make_graphed_callables", _refuses(torch.cuda.make_graphed_callables, _GRAPH))
    if torch.distributed.is_available():
        distributed = torch.distributed
        patches.replace(distributed, "init_process_group", _init_process_group(distributed.init_process_group))

"""TorchScript's interpreter says what its code was refused, as it does for errors of CUDA.

It asks a C++ exception for its words, and one that comes from Python has none for it (torch/csrc/Exceptions.h,
``python_error``), so they are put back where the module that was called hands the error on.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.jit import _script

from ipydevice.virtual.cards import thread
from ipydevice.virtual.patches import Patches

_NOTHING_SAID = "RuntimeError:"  # the last line of what the interpreter prints then


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    thread.refused = ""
    try:
        return nn.Module.__call__(self, *args, **kwargs)
    except RuntimeError as error:
        text = str(error).rstrip()
        if thread.refused and text.endswith(_NOTHING_SAID):
            error.args = (f"{text} {thread.refused}\n",)
        raise


def install(patches: Patches) -> None:
    patches.replace(_script.RecursiveScriptModule, "__call__", _call)

"""How PyTorch and its libraries write a device, and the one way we write it.

Device types are open: a back end outside PyTorch registers any name through
``torch.utils.rename_privateuse1_backend``, so nothing here is limited to a list
except where running text has to be told from a device (`KNOWN`).
"""

from __future__ import annotations

import re

# torch.device accepts these (c10/core/DeviceType.h) and these renamed back ends are in use.
KNOWN = (
    "cpu", "cuda", "mps", "xpu", "hpu", "npu", "meta", "xla", "ipu", "mtia", "maia", "hip", "ve", "fpga", "vulkan",
    "lazy", "mkldnn", "opengl", "opencl", "ideep", "privateuseone", "openreg", "mlu", "musa", "gcu", "sdaa", "dml",
    "neuron", "spyre", "tpu",
)  # fmt: skip

# one device as printed: cuda:0, 'cpu', "MPS", torch.device(type='cuda', index=0), device(type='cuda')
DEVICE = (
    r"(?:torch\.)?device\(\s*(?:type=)?['\"]\w+(?::\d+)?['\"](?:,\s*(?:index=)?-?\d+)?\s*\)"
    r"|<?['\"`]?[A-Za-z][A-Za-z0-9_]*(?::-?\d+)?['\"`]?>?"
)
_REPR = re.compile(r"device\(\s*(?:type=)?['\"](\w+(?::\d+)?)['\"](?:,\s*(?:index=)?(-?\d+))?")

# torch.cuda.HalfTensor, torch.sparse.FloatTensor, torch.FloatTensor
_LEGACY_TYPE = re.compile(r"(?:Variable\[)?torch\.(?:([A-Za-z]\w*)\.)?(?:sparse\.)?([A-Z]\w*)?Tensor\]?$")
# CUDABFloat16Type, MPSFloatType, SparseCUDAFloatType, CPUFloatType, PrivateUse1FloatType
_DTYPES = (
    "BFloat16|Float8\\w*|ComplexFloat|ComplexDouble|ComplexHalf|Float|Double|Half|Long|Int|Short|Char|Byte|Bool"
    "|QInt8|QUInt8|QInt32|UInt\\d+"
)
_ENUM_TYPE = re.compile(rf"(?:Variable\[)?(?:Autograd)?([A-Za-z]\w*?)(?:{_DTYPES})Type\]?$")
_LAYOUTS = re.compile(r"^(?:nestedtensor|sparsecsr|sparse|quantized|mkldnn(?=cpu)|autograd)")


def normalise(text: str) -> str | None:
    """``"CUDA:0"``, ``"'cuda:0'"``, ``"device(type='cuda', index=0)"`` -> ``"cuda:0"``; None where no name is in it."""
    text = text.strip()
    parts = _REPR.search(text)
    if parts is not None:
        name = parts[1] if parts[2] is None else f"{parts[1]}:{parts[2]}"
    else:
        name = text.strip(" '\"`<>.,;!()")
    name = _backend(name.lower())
    return "cpu" if name == "cpu:0" else name or None


def of_type(text: str) -> str | None:
    """The device type in the name of a tensor type: ``torch.cuda.FloatTensor`` -> ``"cuda"``.

    None where the name tells a dtype only (``float``, ``c10::Half``, ``torch.float32``).
    """
    text = text.strip(" '\"`")
    legacy = _LEGACY_TYPE.match(text)
    if legacy is not None:
        backend = (legacy[1] or "cpu").lower()
        return "cpu" if backend == "sparse" else _backend(backend)
    enum = _ENUM_TYPE.match(text)
    if enum is None:
        return None
    return _backend(enum[1].lower()) or "cpu"


def of_index(text: str) -> str:
    """A bare device index: ``-1`` is how ``Tensor.get_device`` writes the CPU; the rest are CUDA's checks."""
    return "cpu" if text.strip() == "-1" else f"cuda:{text.strip()}"


def _backend(name: str) -> str:
    """Dispatch keys name the layout too (SparseCUDA); messages call CUDA "GPU"."""
    name = _LAYOUTS.sub("", name)
    name = name.replace("privateuse1", "privateuseone")
    return "cuda" + name[3:] if name == "gpu" or name.startswith("gpu:") else name


def differ(first: str, second: str) -> bool:
    """Two devices differ; one without an index ("cuda") may be any of its type."""
    if first == second:
        return False
    one, other = first.partition(":"), second.partition(":")
    return one[0] != other[0] or bool(one[2] and other[2])


def of_raw(text: str) -> str:
    """A device index printed as one raw character; index 0 is NUL and cuts the text, so nothing is left of it."""
    return of_index(text if text.isdigit() else str(ord(text)) if text else "0")


# dlpack.h, DLDeviceType; 3 and 11 are pinned host memory
_DLPACK = {"1": "cpu", "2": "cuda", "3": "cpu", "7": "vulkan", "8": "mps", "10": "cuda", "11": "cpu", "13": "cuda",
           "14": "xpu"}  # fmt: skip
# c10/core/DeviceType.h
_CTYPE = {"0": "cpu", "1": "cuda", "6": "hip", "9": "xla", "12": "xpu", "13": "mps", "14": "meta", "15": "hpu",
          "20": "privateuseone"}  # fmt: skip


def of_dlpack(text: str) -> str:
    """A pair of type and index: ``2, 0`` -> ``"cuda:0"``."""
    kind, _, index = text.partition(",")
    name = _DLPACK.get(kind.strip(), f"dlpack{kind.strip()}")
    return name if name == "cpu" or not index else f"{name}:{index.strip()}"


def of_ctype(text: str) -> str:
    """A device type as its number: ``1`` -> ``"cuda"``."""
    return _CTYPE.get(text, f"type{text}")


def inside(text: str) -> list[str]:
    """Devices in a printed list or set: ``{device(type='cuda', index=0), 'cpu'}``."""
    found = [f"{m[1]}:{m[2]}" if m[2] else m[1] for m in _REPR.finditer(text)]
    found = found or re.findall(r"\b[A-Za-z][A-Za-z0-9_]*(?::\d+)?\b", text)
    return [_backend(name.lower()) for name in found if name.lower() not in ("and", "or")]

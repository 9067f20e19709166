"""The device that this process should work on."""

from __future__ import annotations

import os

import torch

from ipydevice import launchers
from ipydevice.toolbox import accelerators


def get_device() -> torch.device:
    """The best device here, with its index: the accelerator's (CUDA, XPU, MPS, a private backend's), else the CPU.

    Started by torchrun, SLURM or MPI, each process gets the card of its LOCAL_RANK; with one process it is the
    current card. The index is always there, since ``torch.device("cuda") != tensor.device``. Nothing is switched
    and nothing started: ``torch.cuda.set_device(get_device())`` makes it the current one.

    Raises:
        RuntimeError: there is no card left for this process's LOCAL_RANK.
    """
    kind = accelerators.kind()
    if kind is None:
        return torch.device("cpu")
    local = launchers.local_rank()
    if local is None:
        return torch.device(kind, accelerators.current(kind))
    count = accelerators.count(kind)
    if local < count:
        return torch.device(kind, local)
    if count == 1 and any(os.environ.get(name) for name in VISIBLE.get(kind, ())):
        return torch.device(kind, 0)  # the launcher shows each process a card of its own
    raise RuntimeError(
        f"this process has LOCAL_RANK {local}, and this machine shows it {count} {kind} device"
        f"{'s' * (count != 1)}: start at most {count} process{'es' * (count != 1)} here"
    )


# Which cards a process sees (CUDA programming guide; HIP; Level Zero).
VISIBLE = {
    "cuda": ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    "xpu": ("ZE_AFFINITY_MASK",),
    "hpu": ("HABANA_VISIBLE_DEVICES",),
    "npu": ("ASCEND_RT_VISIBLE_DEVICES",),
}

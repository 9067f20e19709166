"""Which of several processes this one is, as its launcher says it; read from the environment, nothing is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

# torchrun's and its like (torch/distributed/elastic), SLURM's, Open MPI's, MPICH's and Intel MPI's.
RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
LOCAL_RANK = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
WORLD_SIZE = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def rank() -> int | None:
    """Number of this process among all; None where there is but one."""
    return _number(RANK)


def local_rank() -> int | None:
    """Number of this process among those of its machine: the card that is its own."""
    return _number(LOCAL_RANK)


def own_card() -> int | None:
    """The card that is this process's by its number on its machine; None where it is not one of several.

    Without a launcher's variables the number in ``torch.distributed``'s group counts, as ``mp.spawn`` leaves it.
    """
    number = local_rank()
    group = sys.modules.get("torch.distributed")
    if number is None and group is not None and group.is_available() and group.is_initialized():
        number = int(group.get_rank())
    return number


def world_size() -> int | None:
    """How many processes were started."""
    return _number(WORLD_SIZE)


def _number(names: Sequence[str]) -> int | None:
    """The first of the variables that is set to a number."""
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdecimal()), None)


def is_engine(shell: Any) -> bool:
    """Whether a shell is that of an ipyparallel engine, whose client shows what it sends."""
    return type(getattr(shell, "kernel", None)).__module__.startswith("ipyparallel.")

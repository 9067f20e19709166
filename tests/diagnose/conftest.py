"""What the tests of this folder share: torch in one thread, two virtual cards, notebooks of a few cells."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import shells
import torch
from failing import Notebook

from ipydevice.virtual import virtual_gpus

sys.path.append(str(Path(__file__).parents[1] / "placement"))  # the hostile objects


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def cards() -> Iterator[None]:
    with virtual_gpus(2):
        yield


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    """A real shell on two virtual cards, in which torch, nn, F and DEV are known."""
    with virtual_gpus(2), shells.shell() as shell:
        yield Notebook(shell)
        torch.set_default_device(None)  # a notebook may have set one

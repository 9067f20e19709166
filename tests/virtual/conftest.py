from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from ipydevice.virtual import enabled, virtual_gpus


@pytest.fixture
def cards() -> Iterator[tuple[str, str]]:
    """Two virtual cards, for one test."""
    with virtual_gpus(2):
        yield "cuda:0", "cuda:1"
    assert enabled() == 0


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Tiny operators gain nothing from threads, and sums have one order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

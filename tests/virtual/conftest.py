from __future__ import annotations

from collections.abc import Iterator

import pytest

from ipydevice.virtual import enabled, virtual_gpus


@pytest.fixture
def cards() -> Iterator[tuple[str, str]]:
    """Two virtual cards, for one test."""
    with virtual_gpus(2):
        yield "cuda:0", "cuda:1"
    assert enabled() == 0

"""Two virtual cards for every test of this room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ipydevice.virtual import virtual_gpus


@pytest.fixture(autouse=True)
def cards() -> Iterator[None]:
    with virtual_gpus(2):
        yield

"""Shells that any test may ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import shells


@pytest.fixture
def shell() -> Iterator[shells.Shell]:
    """A fresh IPython shell in this process."""
    with shells.shell() as fresh:
        yield fresh


@pytest.fixture(scope="module")
def kernel() -> Iterator[shells.Kernel]:
    """A real kernel, shared by the tests of a module: starting one costs seconds."""
    with shells.kernel() as started:
        yield started

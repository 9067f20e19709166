"""For test suites: ``@pytest.mark.ipydevice`` fails a test that mixes devices or copies without being asked.

@pytest.mark.ipydevice                          # no mistake, no hidden copy, no hidden wait
@pytest.mark.ipydevice("cuda:0")                # and nothing made or used elsewhere
@pytest.mark.ipydevice(transfers=True)          # copies and waits are allowed, mistakes are not
def test_training_step(): ...

def test_counts(device_report):                 # or look at the report yourself, after
    with device_report() as report: ...
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

MARKER = "ipydevice"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(expect=None, *, transfers=False): fail on device mistakes and, unless transfers=True, on copies "
        "between devices and waits for a device that the code does not ask for",
    )


@pytest.fixture
def device_report() -> Callable[..., Any]:
    """`ipydevice.check`: ``with device_report() as report``."""
    from ipydevice.devicecheck.check import check

    return check


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        return (yield)
    expect, transfers = _read(marker)
    from ipydevice.devicecheck.check import check

    with check(expect) as report:
        result = yield
    hidden = () if transfers else tuple(each for each in report.transfers if not each.explicit)
    if not report.clean or hidden:
        from ipydevice import show

        pytest.fail(show.text(report), pytrace=False)
    return result


def _read(marker: pytest.Mark) -> tuple[Any, bool]:
    """The arguments of a marker. Fails the test, with what would be right, where they are wrong."""
    unknown = set(marker.kwargs) - {"expect", "transfers"}
    if len(marker.args) > 1 or unknown:
        given = f"{sorted(unknown)[0]}=" if unknown else f"{len(marker.args)} arguments"
        pytest.fail(f"the marker {MARKER} takes a device and transfers=True, but got {given}", pytrace=False)
    expect = marker.args[0] if marker.args else marker.kwargs.get("expect")
    return expect, bool(marker.kwargs.get("transfers", False))

"""For test suites: ``@pytest.mark.ipydevice`` fails a test that mixes devices or copies without being asked.

@pytest.mark.ipydevice                          # no mistake, no hidden copy, no hidden wait
@pytest.mark.ipydevice("cuda:0")                # and nothing made or used elsewhere
@pytest.mark.ipydevice(transfers=True)          # copies and waits are allowed, mistakes are not
def test_training_step(): ...

A call that mixes devices is repaired and the test goes on, so that all of them are told; then it fails.  A test
that fails by itself keeps its own error, and the report stands below it.

def test_counts(device_report):                 # or look at the report yourself, after
    with device_report() as report: ...
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ipydevice.report import CheckReport

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

    report = None
    try:
        with check(expect) as report:
            result = yield
    except BaseException:
        if report is not None and _complains(report, transfers):  # what failed may come of it
            item.add_report_section("call", MARKER, _told(report))
        raise
    if _complains(report, transfers):
        pytest.fail(_told(report), pytrace=False)
    return result


def _complains(report: CheckReport, transfers: bool) -> bool:
    return not report.clean or not (transfers or all(each.explicit for each in report.transfers))


def _told(report: CheckReport) -> str:
    from ipydevice import show

    return show.printed(report)


def _read(marker: pytest.Mark) -> tuple[Any, bool]:
    """The arguments of a marker. Fails the test, with what would be right, where they are wrong."""
    unknown = set(marker.kwargs) - {"expect", "transfers"}
    if len(marker.args) > 1 or unknown:
        given = f"{sorted(unknown)[0]}=" if unknown else f"{len(marker.args)} arguments"
        pytest.fail(f"the marker {MARKER} takes a device and transfers=True, but got {given}", pytrace=False)
    expect = marker.args[0] if marker.args else marker.kwargs.get("expect")
    return expect, bool(marker.kwargs.get("transfers", False))

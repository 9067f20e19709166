"""`ipydevice.check` in scripts and tests: nested, decorated, awaited, and as a plugin of pytest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Notebook

import ipydevice
from ipydevice.virtual import virtual_gpus

ROOT = Path(__file__).parents[2]


def test_places_are_in_the_file() -> None:
    with virtual_gpus(2):
        x = torch.ones(3, device="cuda:0")
        shift = torch.ones(3)
        with ipydevice.check() as report:
            assert not report.done
            y = x + shift
        assert report.done
        assert y.device.type == "cuda"
    (finding,) = report.findings
    assert finding.diagnosis.failed.file == __file__
    assert finding.diagnosis.failed.source == "y = x + shift"
    assert finding.diagnosis.culprit is not None
    assert finding.diagnosis.culprit.expression == "shift"
    assert "shift is on cpu" in str(report)


def test_expected_device() -> None:
    with virtual_gpus(2), ipydevice.check("cuda:0") as report:
        torch.ones(3, device="cuda:0") + 1
        torch.ones(4, device="cuda:1")
    assert [(row.device, row.role) for row in report.elsewhere] == [("cuda:1", "made")]


@pytest.mark.parametrize(("given", "error"), [(3, TypeError), ("gpu", ValueError), (object(), TypeError)])
def test_no_device(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="expect takes a device"):
        ipydevice.check(given)


def test_nested_checks_share_what_the_inner_one_finds() -> None:
    with virtual_gpus(1):
        x, a, b, c = torch.ones(3, device="cuda:0"), torch.ones(3), torch.ones(3), torch.ones(3)
        with ipydevice.check() as outer:
            x + a
            with ipydevice.check() as inner:
                x + b
                x.sum().item()
            x + c
    assert [finding.diagnosis.failed.source for finding in inner.findings] == ["x + b"]
    assert [finding.diagnosis.failed.source for finding in outer.findings] == ["x + a", "x + b", "x + c"]
    assert [transfer.expression for transfer in outer.transfers] == ["x.sum().item()"]


def test_one_check_used_twice() -> None:
    check = ipydevice.check()
    with virtual_gpus(1):
        x = torch.ones(3, device="cuda:0")
        with check as first:
            x + torch.ones(3)
        with check as second:
            x + 1
    assert len(first.findings) == 1
    assert second.findings == ()


def test_decorator() -> None:
    @ipydevice.check()
    def step(x: torch.Tensor) -> torch.Tensor:
        """Adds."""
        return x + torch.ones(3)

    with virtual_gpus(1):
        result = step(torch.ones(3, device="cuda:0"))
    assert result.tolist() == [2.0, 2.0, 2.0]
    assert step.__doc__ == "Adds."
    assert len(step.report.findings) == 1


@pytest.mark.parametrize(
    "head",
    ["def step(x)", "async def step(x)", "def step(x): yield\ndef other(x)", "async def step(x): yield\ndef o()"],
)
def test_a_decorated_function_does_not_own_the_notebook(
    notebook: Notebook, head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # narrower, names are cut
    notebook.run("x = torch.ones(3, device=device)\nimport ipydevice")
    notebook.run(f"@ipydevice.check\n{head}: return x")
    text = notebook.run("%devices").text
    assert "1 name with a device" in text
    assert "step" not in text
    notebook.run(
        "def make():\n    w = torch.ones(3)\n    @ipydevice.check\n    def step(x): return x + w\n    return step"
    )
    notebook.run("step = make()\nstep(x);")
    assert "w is on cpu" in str(notebook.names["step"].report)
    assert "step.__wrapped__.__clos" in notebook.run("%devices -v").text  # what it has of its own is its own


def test_a_decorated_function_that_raises() -> None:
    @ipydevice.check(stop=True)
    def step(x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(3)

    with virtual_gpus(1), pytest.raises(RuntimeError, match="same device"):
        step(torch.ones(3, device="cuda:0"))
    assert step.report.stopped
    assert len(step.report.findings) == 1


class Pause:
    """Gives way once, as ``asyncio.sleep(0)`` does."""

    def __await__(self) -> Iterator[None]:
        yield


def test_decorated_coroutine() -> None:
    @ipydevice.check()
    async def step(x: torch.Tensor) -> torch.Tensor:
        await Pause()
        return x + torch.ones(3)

    with virtual_gpus(1):
        started = step(torch.ones(3, device="cuda:0"))
        started.send(None)  # by hand: a browser test before may have left its event loop running in this thread
        with pytest.raises(StopIteration):
            started.send(None)
    assert len(step.report.findings) == 1


def test_a_loop_around_the_check_is_none_of_its_code() -> None:
    with virtual_gpus(1):
        x = torch.ones(3, device="cuda:0")
        for _ in range(2):
            with ipydevice.check() as report:
                x.sum().item()
                x.sum().item()
    assert not any(transfer.loop for transfer in report.transfers)


def test_the_name_stays_a_function() -> None:
    code = "import ipydevice.devicecheck.check, ipydevice; assert isinstance(ipydevice.check, type), ipydevice.check"
    run = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT)}, check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


SUITE = """
import pytest, torch
from ipydevice.virtual import virtual_gpus

@pytest.fixture(autouse=True)
def cards():
    with virtual_gpus(2):
        yield

@pytest.mark.ipydevice
def test_clean():
    x = torch.ones(3).to("cuda:0")
    assert (x + 1).device.type == "cuda"

@pytest.mark.ipydevice
def test_mixes():
    torch.ones(3, device="cuda:0") + torch.ones(3)

@pytest.mark.ipydevice
def test_waits():
    if torch.ones((), device="cuda:0"):
        pass

@pytest.mark.ipydevice(transfers=True)
def test_may_wait():
    assert torch.ones((), device="cuda:0")

@pytest.mark.ipydevice("cuda:0")
def test_elsewhere():
    torch.ones(3)

@pytest.mark.ipydevice(speed=1)
def test_wrong_marker():
    pass

@pytest.mark.ipydevice
def test_own_failure():
    assert 1 == 2

@pytest.mark.ipydevice
def test_own_failure_behind_a_mistake():
    late = torch.ones(3)
    torch.ones(3, device="cuda:0") * late
    assert 3 == 4

def test_unmarked():
    torch.ones(3)

def test_fixture(device_report):
    with device_report() as report:
        torch.ones(3, device="cuda:0") + torch.ones(3)
    assert len(report.findings) == 1
"""


def test_as_a_plugin_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE, "utf-8")
    # Where the project is installed pytest would find the plugin a second time.
    environment = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "ipydevice.devicecheck.pytest_plugin", "-p", "no:cacheprovider",
               "--strict-markers", "-rA", "--tb=short", str(tmp_path)]  # fmt: skip
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    outcome: dict[str, str] = {}
    for line in run.stdout.splitlines():
        word, _, name = line.partition(" ")
        if word in ("PASSED", "FAILED"):
            outcome[name.partition("::")[2].partition(" ")[0]] = word
    assert {name for name, word in outcome.items() if word == "PASSED"} == {
        "test_clean", "test_may_wait", "test_unmarked", "test_fixture",
    }  # fmt: skip
    assert len(outcome) == 10, run.stdout
    assert "torch.ones(3) is on cpu" in run.stdout
    assert "1 wait for a device" in run.stdout
    assert "1 line not on cuda:0, no call mixes devices" in run.stdout
    assert "takes a device and transfers=True, but got speed=" in run.stdout
    assert "assert 1 == 2" in run.stdout
    assert "assert 3 == 4" in run.stdout
    assert "late is on cpu" in run.stdout.split("Captured ipydevice call", 1)[1]
    assert "%devicefix" not in run.stdout  # nobody takes it here
    assert '+ late = torch.ones(3, device="cuda:0")' in run.stdout
    assert "test_suite.py, line 21: " in run.stdout

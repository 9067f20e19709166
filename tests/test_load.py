"""Loading, unloading and reloading: what it brings in, and that nothing stays behind."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from shells import Shell

import ipydevice

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "ipywidgets", "anywidget", "nbformat")

LOAD = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "ipydevice")
"""


def python(code: str, *, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs code in a fresh interpreter that finds this project, and before it what is in `path`."""
    places = [str(place) for place in (path, ROOT) if place is not None]
    code = f"import sys\nsys.path[:0] = {places!r}\n{code}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def brought_in(code: str) -> set[str]:
    """Which of the heavy packages are loaded after running code in a fresh interpreter."""
    run = python(f"{code}\nprint('LOADED', *(name for name in {HEAVY!r} if name in sys.modules))")
    assert run.returncode == 0, run.stderr
    return set(run.stdout.rpartition("LOADED")[2].split())


def test_importing_brings_in_nothing_heavy() -> None:
    assert brought_in("import ipydevice") == set()


def test_the_extension_brings_in_nothing_heavy() -> None:
    assert brought_in(LOAD) == set()


def test_a_good_cell_brings_in_nothing_heavy() -> None:
    assert brought_in(LOAD + "shell.run_cell('x = 1')\nshell.run_cell('1 / 0')") == set()


@pytest.mark.parametrize("name", ["nbformat", "torch"])
def test_the_check_above_can_fail(name: str) -> None:
    assert brought_in(f"import ipydevice, {name}") >= {name}


def test_public_names() -> None:
    assert {"explain", "inventory", "virtual_gpus", "Diagnosis", "Fix", "Inventory"} <= set(dir(ipydevice))
    for name in ipydevice.__all__:
        assert getattr(ipydevice, name) is not None
    assert callable(ipydevice.inventory)
    with pytest.raises(AttributeError, match="no attribute 'explian'"):
        ipydevice.explian  # noqa: B018


def test_the_version_is_that_of_the_distribution() -> None:
    assert f'version = "{ipydevice.__version__}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    "use", ["ipydevice.explain()", "ipydevice.inventory()", "ipydevice.explain(ValueError('on cpu and cuda:0'))"]
)
class TestAPoorPyTorch:
    """A torch that is missing or too old is told at first use, in words that say what to do."""

    def test_missing(self, use: str) -> None:
        run = python(f"sys.modules['torch'] = None\nimport ipydevice\n{use}")
        assert "ImportError: PyTorch is not installed in this environment" in run.stderr
        assert "pip install torch" in run.stderr

    def test_too_old(self, use: str, tmp_path: Path) -> None:
        (tmp_path / "torch.py").write_text("__version__ = '2.3.1+cu118'\n")
        run = python(f"import torch, ipydevice\n{use}", path=tmp_path)
        assert "ImportError: ipydevice needs PyTorch 2.4 or newer, and this is 2.3.1+cu118" in run.stderr


def test_a_missing_torch_does_not_hinder_loading() -> None:
    run = python(f"sys.modules['torch'] = None\n{LOAD}\nshell.run_cell('%devices')")
    assert run.returncode == 0
    assert "UsageError: PyTorch is not installed in this environment" in run.stdout + run.stderr


def state_of(shell: Any) -> dict[str, Any]:
    """All that an extension may change in a shell and around it."""
    return {
        "attributes": {name for name in shell.__dict__ if name.startswith(("showtraceback", "_ipydevice"))},
        "showtraceback": shell.showtraceback,
        "events": {event: list(callbacks) for event, callbacks in shell.events.callbacks.items()},
        "line magics": set(shell.magics_manager.magics["line"]),
        "cell magics": set(shell.magics_manager.magics["cell"]),
        "registered": "DeviceMagics" in shell.magics_manager.registry,
        "thread hook": threading.excepthook,
        "hook": sys.excepthook,
        "names": {name for name in shell.user_ns if not name.startswith("_")},
    }


def test_unloading_leaves_nothing_behind(shell: Shell) -> None:
    before = state_of(shell.ip)
    shell.run("%load_ext ipydevice")
    assert state_of(shell.ip) != before
    assert shell.run("%unload_ext ipydevice").error is None
    assert state_of(shell.ip) == before


def test_reloading_doubles_nothing(shell: Shell) -> None:
    shell.run("%load_ext ipydevice")
    once = state_of(shell.ip)
    for _ in range(3):
        assert shell.run("%reload_ext ipydevice").error is None
    again = state_of(shell.ip)
    assert {event: len(callbacks) for event, callbacks in again["events"].items()} == {
        event: len(callbacks) for event, callbacks in once["events"].items()
    }
    for key in ("attributes", "line magics", "registered", "names"):
        assert again[key] == once[key]
    shell.run("%unload_ext ipydevice")
    assert "showtraceback" not in shell.ip.__dict__


def test_loading_twice_by_hand_is_loading_once(shell: Shell) -> None:
    ipydevice.load_ipython_extension(shell.ip)
    once = state_of(shell.ip)
    ipydevice.load_ipython_extension(shell.ip)
    assert state_of(shell.ip) == once
    ipydevice.unload_ipython_extension(shell.ip)
    ipydevice.unload_ipython_extension(shell.ip)
    assert "showtraceback" not in shell.ip.__dict__


def test_what_others_hang_in_after_us_stays(shell: Shell) -> None:
    shell.run("%load_ext ipydevice")
    ours, ours_in_threads = shell.ip.showtraceback, threading.excepthook
    calls: list[str] = []

    def theirs(*args: Any, **kwargs: Any) -> None:
        calls.append("theirs")
        ours(*args, **kwargs)

    def theirs_in_threads(args: Any) -> None:
        calls.append("theirs in threads")

    shell.ip.showtraceback = theirs
    threading.excepthook = theirs_in_threads
    shell.run("%unload_ext ipydevice")
    assert shell.ip.showtraceback is theirs
    assert threading.excepthook is theirs_in_threads
    run = shell.run("1 / 0")
    assert calls == ["theirs"]
    assert run.text.count("ZeroDivisionError: division by zero") == 1
    assert ours_in_threads is not theirs_in_threads


def test_what_others_have_hung_in_before_us_comes_back(shell: Shell) -> None:
    before = shell.ip.showtraceback

    def theirs(*args: Any, **kwargs: Any) -> None:
        before(*args, **kwargs)

    shell.ip.showtraceback = theirs
    shell.run("%load_ext ipydevice")
    assert shell.ip.showtraceback is not theirs
    shell.run("%unload_ext ipydevice")
    assert shell.ip.showtraceback is theirs

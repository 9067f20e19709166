"""IPython's own program in a real terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect  # comes with IPython
import pytest

ROOT = Path(__file__).parents[1]
TIMEOUT = 120  # seconds; importing torch on a busy machine
ESCAPES = re.compile(r"\x1b(\[[\d;?]*[A-Za-z]|\][^\x07]*\x07|[=>()][0B]?)")

SETUP = (
    "import torch, ipydevice; gpus = ipydevice.virtual_gpus(1).enable(); "
    "first = torch.zeros(3, device='cuda:0'); second = torch.zeros(3)"
)


class Terminal:
    """A person at IPython's prompt."""

    def __init__(self, *options: str, home: Path) -> None:
        self._child = pexpect.spawn(
            sys.executable,
            ["-m", "IPython", "--no-banner", "--no-confirm-exit", *options],
            env={"PYTHONPATH": str(ROOT), "HOME": str(home), "TERM": "xterm-256color", "PATH": "/usr/bin:/bin"},
            encoding="utf-8",
            dimensions=(60, 100),
            timeout=TIMEOUT,
        )
        self._wait(1)

    def _wait(self, number: int) -> str:
        self._child.expect_exact(f"In [{number}]: ")
        return ESCAPES.sub("", self._child.before)

    def enter(self, line: str, number: int) -> str:
        """Type a line, wait for prompt `number`, and return what came between."""
        self._child.sendline(line)
        return self._wait(number)

    def close(self) -> None:
        self._child.close(force=True)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal("--simple-prompt", home=tmp_path)
    yield opened
    opened.close()


def test_the_panel_is_text(terminal: Terminal) -> None:
    terminal.enter("%load_ext ipydevice", 2)
    terminal.enter(SETUP, 3)
    said = terminal.enter("first + second", 4)
    assert "Expected all tensors to be on the same device" in said
    assert "✗ second is on cpu, first is on cuda:0" in said
    assert said.index("Traceback") < said.index("✗")
    assert "In [3], line 1" in said
    assert "names with a device" in terminal.enter("%devices", 5)


def test_the_panel_fits_the_terminal(terminal: Terminal) -> None:
    terminal.enter("%load_ext ipydevice", 2)
    terminal.enter(SETUP, 3)
    panel = terminal.enter("first + second", 4).partition("✗")[2]
    assert max(len(line.rstrip()) for line in panel.splitlines()) <= 100

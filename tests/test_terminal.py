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
            env={
                "PYTHONPATH": str(ROOT),
                "HOME": str(home),
                "TERM": "xterm-256color",
                "PATH": "/usr/bin:/bin",
                "PROMPT_TOOLKIT_NO_CPR": "1",  # nobody is here to tell where the cursor stands
            },
            encoding="utf-8",
            dimensions=(60, 100),
            timeout=TIMEOUT,
        )
        self._enter = "\n" if "--simple-prompt" in options else "\r"
        self._wait(1)

    def _wait(self, number: int) -> str:
        colour = r"(?:\x1b\[[\d;]*m)*"
        self._child.expect(rf"In \[{colour}{number}{colour}\]: ")
        return ESCAPES.sub("", self._child.before)

    def enter(self, line: str, number: int) -> str:
        """Type a line, wait for prompt `number`, and return what came between."""
        self._child.send(line + self._enter)
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


def test_a_fix_stands_at_the_next_prompt_and_enter_runs_it(tmp_path: Path) -> None:
    """prompt_toolkit takes what `%devicefix` offers as the text to start from."""
    opened = Terminal(home=tmp_path)
    try:
        opened.enter("%load_ext ipydevice", 2)
        opened.enter(SETUP, 3)
        opened.enter("first + second", 4)
        opened.enter("%devicefix 2", 5)
        said = opened.enter("", 6)
        assert "Out[5]" in said
        assert "device='cuda:0'" in said
    finally:
        opened.close()

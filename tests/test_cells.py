"""Which run of which cell a frame belongs to, in real shells."""

from __future__ import annotations

import json
import sys
import traceback

import pytest
from shells import Kernel, Shell

from ipydevice.cells import Cell, CellHistory

DIVIDE = "def divide():\n    return 1 / 0"

LISTEN = """
import sys, traceback
from ipydevice.cells import CellHistory
history = CellHistory.from_shell(get_ipython())
def _starts(info):
    history.open(get_ipython().displayhook.prompt_count, info.raw_cell, getattr(info, "cell_id", None))
def _ends(result):
    history.close(bool(result.success))
get_ipython().events.register("pre_run_cell", _starts)
get_ipython().events.register("post_run_cell", _ends)
"""


@pytest.fixture
def listening(shell: Shell) -> Shell:
    """A shell whose cells are noted down, as the hook does it."""
    assert shell.run(LISTEN).error is None
    return shell


def user_lines(history: CellHistory) -> list[tuple[int, str]]:
    """(number, line as written) for each frame of a cell in the last traceback, the outermost first."""
    lines = []
    for frame, line in traceback.walk_tb(sys.last_traceback):
        cell = history.find(frame.f_code.co_filename)
        if cell is not None:
            above = history.python(cell)[1]
            lines.append((cell.number, cell.raw.splitlines()[above + line - 1].strip()))
    return lines


def test_by_hand() -> None:
    history = CellHistory()
    assert history.running is None
    cell = history.open(1, "x = 1", "abc")
    assert history.running is cell
    assert (cell.number, cell.raw, cell.cell_id, cell.success, cell.duration) == (1, "x = 1", "abc", None, None)
    history.close(success=False)
    assert history.running is None
    assert cell.success is False
    assert cell.duration is not None
    assert cell.duration >= 0


def test_closing_what_never_started_does_nothing() -> None:
    history = CellHistory()
    history.close(success=True)
    assert history.cells == []


def test_two_runs_are_never_equal() -> None:
    assert Cell(1, "x") != Cell(1, "x")


@pytest.mark.parametrize(
    ("raw", "python", "above"),
    [
        ("x = 1", "x = 1\n", 0),
        ("\n  \nx = 1\n", "x = 1\n", 2),
        ("%%time\nx = 1", "x = 1\n", 1),
        ("\n%%time\n\nx = 1", "x = 1\n", 3),
        ("%%capture out\n%%time\nx = 1", "x = 1\n", 2),
        ("%%bash\nls", "%%bash\nls\n", 0),
        ("", "\n", 0),
    ],
)
def test_python_without_a_shell(raw: str, python: str, above: int) -> None:
    assert CellHistory().python(Cell(1, raw)) == (python, above)


def test_python_is_what_ipython_makes_of_it(listening: Shell) -> None:
    history = listening.names["history"]
    text, above = history.python(Cell(1, "%%time\nfiles = !ls\nx = 1"))
    assert above == 1
    assert "getoutput('ls')" in text
    assert "!" not in text
    other, _ = history.python(Cell(1, "%%bash\nls"))
    assert "run_cell_magic" in other


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("divide()", "divide()"),
        ("\n\n\ndivide()", "divide()"),
        ("    x = 1\n    divide()", "divide()"),
        ("!true\ndivide()", "divide()"),
        ("%%time\nx = 1\ndivide()", "divide()"),
        ("%%time\n\ndivide()", "divide()"),
        ("%%timeit -n1 -r1\nx = 1\ndivide()", "divide()"),
        ("%%prun -q\nx = 1\ndivide()", "divide()"),
        ("%%capture\nx = 1\ndivide()", "divide()"),
        ("%%capture\n%%time\nx = 1\ndivide()", "divide()"),
        ("await __import__('asyncio').sleep(0)\ndivide()", "divide()"),
        ("[divide() for _ in range(1)]", "[divide() for _ in range(1)]"),
    ],
)
def test_a_frame_finds_its_cell_and_line(listening: Shell, cell: str, line: str) -> None:
    listening.run(DIVIDE)
    listening.run(cell)
    *_, caller, inner = user_lines(listening.names["history"])
    assert caller[1] == line
    assert caller[0] == inner[0] + 1
    assert inner[1] == "return 1 / 0"


def test_numbers_are_those_of_the_prompt(listening: Shell) -> None:
    run = listening.run("1 / 0")
    number = listening.names["history"].cells[-1].number
    assert f"-{number}-" in run.text or f"In[{number}]" in run.text


def test_the_running_cell_comes_before_its_twins(listening: Shell) -> None:
    history = listening.names["history"]
    listening.run("twin = sys._getframe().f_code.co_filename", cell_id="a")
    listening.run("twin = sys._getframe().f_code.co_filename", cell_id="b")
    first, second = history.cells[-2:]
    assert history.twins(second) == [first]
    assert history.find(listening.names["twin"]) is second


def test_running_a_cell_again_leaves_one_in_current() -> None:
    history = CellHistory()
    for number, raw, cell_id in [(1, "a", "A"), (2, "b", "B"), (3, "a2", "A"), (4, "c", None), (5, "c", None)]:
        history.open(number, raw, cell_id)
        history.close(success=True)
    assert [cell.number for cell in history.current()] == [2, 3, 5]
    assert history.twins(history.cells[4]) == [history.cells[3]]


def test_rebuilt_cells_are_the_same_when_they_run_again_with_ids() -> None:
    history = CellHistory(cells=[Cell(1, "a"), Cell(2, "b")])
    history.open(3, "a", "A")
    assert [cell.number for cell in history.current()] == [2, 3]


def test_a_body_that_a_magic_runs_belongs_to_its_cell(listening: Shell) -> None:
    history = listening.names["history"]
    before = len(history.cells)
    listening.run("%%capture\nx = 1")
    assert len(history.cells) == before + 1
    assert history.cells[-1].success is True
    assert history.running is None


def test_built_late(shell: Shell) -> None:
    shell.run(DIVIDE)
    shell.run("divide()")
    history = CellHistory.from_shell(shell.ip)
    assert [(cell.number, cell.raw) for cell in history.cells] == [(1, DIVIDE), (2, "divide()")]
    assert history.running is None
    assert user_lines(history) == [(2, "divide()"), (1, "return 1 / 0")]


def test_built_by_a_cell_the_cell_is_running(shell: Shell) -> None:
    shell.run("x = 1")
    shell.run("from ipydevice.cells import CellHistory\nhistory = CellHistory.from_shell(get_ipython())")
    running = shell.names["history"].running
    assert running is not None
    assert running.number == 2


@pytest.mark.parametrize("name", ["<string>", "<stdin>", "/usr/lib/python3/linear.py", "", "<ipython-input-99-abcdef>"])
def test_a_file_that_is_no_cell(listening: Shell, name: str) -> None:
    listening.run(DIVIDE)
    assert listening.names["history"].find(name) is None


def test_in_a_kernel(kernel: Kernel) -> None:
    kernel.run(LISTEN)
    kernel.run(DIVIDE, cell_id="first")
    kernel.run("%%time\nx = 1\ndivide()", cell_id="second")
    probe = kernel.run(
        "import json\n"
        "files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(sys.last_traceback)]\n"
        "found = [history.find(file) for file in files]\n"
        "print(json.dumps([[cell.number, cell.cell_id] for cell in found if cell]))"
    )
    *_, caller, inner = json.loads(probe.text)
    assert inner[0] == 2
    assert caller[0] == 3
    if inner[1] is not None:  # IPython 7.34 tells no ids
        assert (caller[1], inner[1]) == ("second", "first")

"""The tutorials, from top to bottom in real kernels: what has to fail fails, and says what it should.

Their panels are golden texts in ``tests/tutorials/``; ``IPYDEVICE_REGEN=1`` rewrites these and the outputs
that the notebooks are stored with.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

pytest.importorskip("ipyparallel")  # the tutorial on ranks talks with two processes through it

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
GOLDEN = ROOT / "tests" / "tutorials"
REGEN = os.environ.get("IPYDEVICE_REGEN") == "1"

tutorial = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

# What differs from run to run and from machine to machine.
_CHANGES = [
    (re.compile(r"\b[\d.,]+ (?:h|min|s|ms|µs)\b"), "<time>"),
    (re.compile(r"\s+(?=[\d,]+ calls of torch in )"), "  "),  # as far right as the time is short
    (re.compile(r"\bhost \w[\w.-]*; "), "host <name>; "),
    (re.compile(r"^( +\d+ +)\d+( +\d+ +)(?=✗? ?cuda:)", re.MULTILINE), r"\1<pid>\2"),
    (re.compile(r"\bpid +(?=local\b)"), "pid  "),  # as wide as the longest number of a process
    (re.compile(r"\b(\d) of \S+: NCCL"), r"\1 of <name>: NCCL"),
    (re.compile(r"'/\S*/tmp\w+/"), "'<folder>/"),
    (re.compile(r"torch \d\S*;"), "torch <version>;"),
    # Which of them ipyparallel raises depends on whether an engine's error was streamed before the cell ended.
    (
        re.compile(
            r"^(?:CompositeError: one or more exceptions raised in: %px|AlreadyDisplayedError: \d+ errors)$",
            re.MULTILINE,
        ),
        "<the engines' errors>",
    ),
    (re.compile(r"\x1b\[[\d;]*m"), ""),
    (re.compile(r"[ ]+$", re.MULTILINE), ""),
]


def said(notebook: NotebookNode) -> str:
    """What each cell shows that fails or asks us something, as text."""
    blocks = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        failed = [f"{out.ename}: {out.evalue.splitlines()[0]}" for out in cell.outputs if out.output_type == "error"]
        if not failed and "%device" not in cell.source:
            continue
        shown = [*failed, *_shown(cell)]
        blocks.append("\n".join([f"── In [{cell.execution_count}]  {cell.id}", *shown]))
    text = "\n\n".join(blocks) + "\n"
    for pattern, instead in _CHANGES:
        text = pattern.sub(instead, text)
    return text


def _shown(cell: NotebookNode) -> Iterator[str]:
    for kind, outputs in groupby(cell.outputs, key=lambda output: output.output_type):
        if kind == "stream":
            # One text: in how many messages it comes depends on when the kernel happens to flush.
            if "%px" not in cell.source:
                yield "".join(output.text for output in outputs).rstrip("\n")
            continue
        for output in outputs:
            if output.get("data") and not output.get("metadata"):
                yield output.data["text/plain"]


class Executed:
    """All of them, run once: the folder of the copies, and what the tool says is wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        asked = [] if REGEN else ["--output", str(folder)]
        run = subprocess.run(
            [sys.executable, str(ROOT / "tools" / "notebooks.py"), *asked],
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=900,
            check=False,
        )
        self.code, self.told = run.returncode, run.stderr

    def wrong_with(self, name: str) -> str:
        """From its name to the next notebook's."""
        return "\n".join(re.findall(rf"^{name}: .*?(?=^\d\d_\w+\.ipynb: |\Z)", self.told, re.DOTALL | re.MULTILINE))


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Executed:
    return Executed(ROOT / "notebooks" if REGEN else tmp_path_factory.mktemp("tutorials"))


@tutorial
def test_says_what_it_should(path: Path, executed: Executed) -> None:
    assert not executed.wrong_with(path.name)
    text = said(nbformat.read(executed.folder / path.name, as_version=4))
    golden = GOLDEN / f"{path.stem}.txt"
    if REGEN:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_the_tool_says_whether_all_is_well(executed: Executed) -> None:
    assert executed.code == 0, executed.told


@tutorial
def test_is_stored_with_what_it_says(path: Path) -> None:
    """People read notebooks on code hosts, where nothing runs; `make notebooks` stores the outputs."""
    stored = nbformat.read(path, as_version=4)
    assert said(stored) == (GOLDEN / f"{path.stem}.txt").read_text(encoding="utf-8")


@tutorial
def test_is_a_notebook_that_people_can_read(path: Path) -> None:
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    assert stored.cells[0].source.startswith(f"# {int(path.stem[:2])}. ")
    assert any(cell.source.startswith("## Next time\n") for cell in stored.cells), "how to avoid it next time"
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    tagged = [cell for cell in code if "raises-exception" in cell.metadata.get("tags", [])]
    assert tagged
    assert [cell.id for cell in code if any(out.output_type == "error" for out in cell.outputs)] == [
        cell.id for cell in tagged
    ]
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/(?:home|root|Users)/|/lib/python3", text), "a folder of somebody's machine"
    assert path.stat().st_size < 100_000


def test_a_name_that_is_no_tutorial() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "notebooks.py"), "11_nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert "no tutorial is called '11_nothing': there are 01_model_and_data_apart, " in run.stderr


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import asyncio

        import notebooks
    finally:
        sys.path.pop(0)
    cells = [
        nbformat.v4.new_code_cell("1", metadata={"tags": ["raises-exception"]}, id="one"),
        nbformat.v4.new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]}, id="other"),
        nbformat.v4.new_code_cell("2", metadata={"tags": ["offered"]}, id="fixed"),
        nbformat.v4.new_code_cell("undefined", id="last"),
    ]
    path = tmp_path / "made.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    _, wrong = asyncio.run(notebooks.execute(path, store=False))
    assert [line.partition(":")[0] for line in wrong] == [
        "one should raise, and runs",
        "other raises and gets no panel",
        "fixed is not what %devicefix offers",
        "a cell fails that should not",
    ]

"""The quickstart, run as `make demo` runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("nbconvert")  # not in the oldest supported set

ROOT = Path(__file__).parents[1]
MIME_TYPE = "application/vnd.ipydevice.v1+json"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("build")


@pytest.fixture(scope="module")
def run(output: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "demo.py"), "--output", str(output)],
        capture_output=True,
        text=True,
        cwd=output,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(output)},
        check=False,
    )


def test_prints_what_a_person_would_see(run: subprocess.CompletedProcess[str]) -> None:
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("fails, as it should") == 2
    assert "✗ labels is on cpu, logits is on cuda:0" in run.stdout
    assert "✗ self.mean is on cpu" in run.stdout
    assert "names with a device" in run.stdout
    assert "make lab" in run.stdout


def test_leaves_the_executed_notebook(run: subprocess.CompletedProcess[str], output: Path) -> None:
    notebook = nbformat.read(output / "quickstart.ipynb", as_version=4)
    panels = [
        out.data[MIME_TYPE]
        for cell in notebook.cells
        for out in cell.get("outputs", [])
        if MIME_TYPE in out.get("data", {})
    ]
    assert [panel.get("cause") for panel in panels] == ["label_not_moved", "plain_tensor_attribute", None]


def test_leaves_a_page_that_needs_no_net_for_the_panel(run: subprocess.CompletedProcess[str], output: Path) -> None:
    page = (output / "quickstart.html").read_text(encoding="utf-8")
    assert "ipydevice-static" in page
    assert "application/vnd.jupyter.widget-state+json" not in page


def test_the_notebook_is_saved_without_outputs() -> None:
    notebook = nbformat.read(ROOT / "notebooks" / "quickstart.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    tagged = [cell.id for cell in notebook.cells if "raises-exception" in cell.metadata.get("tags", [])]
    assert tagged == ["training-loop", "forward"]


def test_a_notebook_without_the_panels_it_should_have_is_a_failure(tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "other.ipynb")
    asked = ["--notebook", str(tmp_path / "other.ipynb"), "--output", str(tmp_path / "build")]
    run = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "demo.py"), *asked], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "No panel under In [1]" in run.stderr

"""Run the quickstart in a real Jupyter kernel and print what a person would see.

    python tools/demo.py --output build

Leaves the executed notebook and a page in the output folder.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from nbformat import NotebookNode

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "quickstart.ipynb"
MIME_TYPE = "application/vnd.ipydevice.v1+json"
SECONDS_PER_CELL = 300  # the first `import torch` on a slow disk


class ProgressClient(NotebookClient):  # type: ignore[misc]  # nbclient's own types need traitlets' plugin
    """Says which cell is running: starting a kernel and importing PyTorch take their time."""

    async def async_execute_cell(self, cell: NotebookNode, cell_index: int, **kwargs: object) -> NotebookNode:
        started = time.monotonic()
        done: NotebookNode = await super().async_execute_cell(cell, cell_index, **kwargs)
        if cell.cell_type == "code":
            failed = any(output.output_type == "error" for output in cell.outputs)
            verdict = "fails, as it should" if failed else "runs"
            first = cell.source.splitlines()[0]
            print(f"   In [{cell.execution_count}] {verdict} ({time.monotonic() - started:.1f} s)  {first}", flush=True)
        return done


def execute(path: Path) -> NotebookNode:
    """The notebook with its outputs. Raises nbclient's CellExecutionError where a cell fails that should not."""
    notebook = nbformat.read(path, as_version=4)
    ProgressClient(
        notebook,
        kernel_name="python3",
        timeout=SECONDS_PER_CELL,
        # A saved widget needs scripts from the net; the static panel beside it needs nothing.
        store_widget_state=False,
        extra_arguments=["--log-level=ERROR"],  # ipykernel 7.4 warns of every kernel on TCP
    ).execute()
    return notebook


def as_seen(notebook: NotebookNode) -> Iterator[str]:
    """Each cell that shows something of ours, with the error above it, as a terminal shows it."""
    for cell in _code_cells(notebook):
        outputs = cell.outputs
        panels = [output.data["text/plain"] for output in outputs if MIME_TYPE in output.get("data", {})]
        errors = [f"{output.ename}: {output.evalue}" for output in outputs if output.output_type == "error"]
        if not panels and "%device" not in cell.source:
            continue
        yield _rule(f"In [{cell.execution_count}]")
        yield cell.source
        yield ""
        yield from (f"{error}\n" for error in errors)
        yield from (output.text for output in outputs if output.output_type == "stream")
        yield from (f"{panel}\n" for panel in panels)


def _code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _rule(title: str) -> str:
    return f"── {title} ".ljust(100, "─")


def unexplained(notebook: NotebookNode) -> list[int]:
    """Numbers of cells that should have failed with a panel, and did not."""
    return [
        cell.execution_count
        for cell in _code_cells(notebook)
        if "raises-exception" in cell.metadata.get("tags", [])
        and not any(MIME_TYPE in output.get("data", {}) for output in cell.outputs)
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=Path("build"), help="folder for the notebook and the page")
    parser.add_argument("--notebook", type=Path, default=NOTEBOOK, help="the notebook to run")
    asked = parser.parse_args(arguments)

    print(f"== Running {asked.notebook.name} in a Jupyter kernel", flush=True)
    notebook = execute(asked.notebook)
    print("\n".join(["", *as_seen(notebook)]))

    asked.output.mkdir(parents=True, exist_ok=True)
    executed = asked.output / asked.notebook.name
    page = executed.with_suffix(".html")
    nbformat.write(notebook, executed)
    page.write_text(HTMLExporter().from_notebook_node(notebook)[0], encoding="utf-8")
    print(_rule("done"))
    print(f"executed notebook  {executed}\npage               {page}")
    print("live               make lab   opens the notebook in JupyterLab, where one click applies a fix")

    missing = unexplained(notebook)
    if missing:
        print(f"No panel under In {missing}, which should have failed with one.", file=sys.stderr)
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())

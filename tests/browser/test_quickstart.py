"""The whole way, nothing made by hand: real errors on virtual GPUs, found, explained and mended by a click."""

from __future__ import annotations

import json

import nbformat
from conftest import ROOT, Notebook
from playwright.sync_api import expect


def index_of(notebook: nbformat.NotebookNode, cell_id: str) -> int:
    (index,) = (i for i, cell in enumerate(notebook.cells) if cell.id == cell_id)
    return index


def run_until(opened: Notebook, notebook: nbformat.NotebookNode, last: int, first: int = 0) -> None:
    for index in range(first, last + 1):
        if notebook.cells[index].cell_type == "code":
            opened.run(index)


def test_quickstart_is_mended_by_clicks(page, jupyter):
    notebook = nbformat.read(ROOT / "notebooks" / "quickstart.ipynb", as_version=4)
    (jupyter.root / "quickstart.ipynb").write_text(json.dumps(notebook))
    failing = [i for i, cell in enumerate(notebook.cells) if "raises-exception" in cell.metadata.get("tags", ())]
    loop = index_of(notebook, "training-loop")
    opened = Notebook(page, jupyter, "quickstart.ipynb")

    run_until(opened, notebook, loop)
    output = opened.cell(loop).locator(".jp-OutputArea")
    expect(output).to_contain_text("RuntimeError")
    live = opened.live(loop)
    expect(live).to_contain_text("labels is on cpu, logits is on cuda:0")
    number = opened.prompt(loop).strip("[]:")
    assert f"In [{number}], line 4" in live.inner_text()
    live.locator(".ipd-table > summary").click()
    expect(live.get_by_role("treegrid")).to_contain_text("labels")
    before = opened.prompt(loop)
    live.get_by_role("button", name=f"fix & re-run In [{number}]").first.click()
    opened.wait_for_run(loop, before)
    expect(output).to_contain_text("loss ")
    expect(output).not_to_contain_text("Error")
    assert "labels = labels.to(device)" in opened.source(loop)

    later = next(i for i in failing if i > loop)
    run_until(opened, notebook, later, first=loop + 3)  # without the cell of %devicefix 1
    output = opened.cell(later).locator(".jp-OutputArea")
    expect(output).to_contain_text("RuntimeError")
    count = opened.cells.count()
    opened.live(later).get_by_role("button", name="insert: ").first.click()
    expect(opened.cells).to_have_count(count + 1)
    assert opened.source(later + 1).startswith("# replaces In [")
    before = opened.prompt(later)
    opened.live(later).get_by_role("button", name="fix & re-run").first.click()
    opened.wait_for_run(later, before)
    expect(output).not_to_contain_text("Error")
    expect(output).to_contain_text("tensor(")

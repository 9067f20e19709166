"""What a person does with the panel in JupyterLab."""

from __future__ import annotations

from panels import CELLS
from playwright.sync_api import expect


def fail(notebook):
    for index in range(3):
        notebook.run(index)
    live = notebook.live(2)
    expect(live).to_be_visible()
    return live


def test_main_button_mends_the_cell_and_runs_in_order(open_notebook):
    notebook = open_notebook(CELLS)
    live = fail(notebook)
    assert "AssertionError" in notebook.output(2)
    expect(notebook.cell(2).locator(".ipydevice-static")).to_be_hidden()
    live.get_by_role("button", name="fix & re-run In [2], In [3]: make labels on cuda:0").click()
    expect(notebook.cell(2).locator(".jp-OutputArea")).to_contain_text("passed cuda:0")
    assert notebook.source(1) == CELLS[1].replace("cpu", "cuda:0")
    assert (notebook.prompt(1), notebook.prompt(2)) == ("[4]:", "[5]:")
    expect(notebook.cells).to_have_count(4)


def test_main_button_of_a_repair_inserts_and_runs_it(open_notebook):
    notebook = open_notebook(CELLS)
    fail(notebook).get_by_role("button", name="repair & re-run In [3]").click()
    expect(notebook.cell(2).locator(".jp-OutputArea")).to_contain_text("passed cuda:0")
    assert notebook.source(3) == "labels.device = 'cuda:0'"
    assert notebook.source(1) == CELLS[1]


def test_insert_makes_a_cell_below_and_undo_takes_it_away(open_notebook):
    notebook = open_notebook(CELLS)
    live = fail(notebook)
    live.get_by_role("button", name="insert: make labels on cuda:0").click()
    expect(notebook.cells).to_have_count(5)
    expect(live.get_by_role("status").last).to_contain_text("Inserted below")
    assert notebook.source(3) == "# replaces In [2]; then run In [3]\n" + CELLS[1].replace("cpu", "cuda:0")
    notebook.page.keyboard.press("Control+Enter")  # the new cell is the active one
    expect(notebook.cell(3).locator(".jp-InputPrompt")).to_have_text("[4]:")
    before = notebook.prompt(2)
    notebook.run(2)
    assert before != notebook.prompt(2)
    assert "passed cuda:0" in notebook.output(2)
    notebook.cell(3).locator(".jp-InputPrompt").click()
    notebook.page.keyboard.press("Escape")
    notebook.page.keyboard.press("z")
    expect(notebook.cells).to_have_count(4)


def test_a_changed_cell_is_never_replaced(open_notebook):
    notebook = open_notebook(CELLS)
    live = fail(notebook)
    notebook.cell(1).locator(".cm-content").click()
    notebook.page.keyboard.press("Control+End")
    notebook.page.keyboard.type("  # mine")
    live.get_by_role("button", name="fix & re-run").first.click()
    expect(live.get_by_role("status").last).to_contain_text("In [2] has changed since it ran")
    assert notebook.source(1) == CELLS[1] + "  # mine"
    expect(notebook.cells).to_have_count(5)


def test_without_the_labextension_the_cells_run_too(open_notebook, plain_jupyter):
    notebook = open_notebook(CELLS, plain_jupyter)
    live = fail(notebook)
    assert notebook.page.evaluate("globalThis.__ipydevice === undefined")
    live.get_by_role("button", name="fix & re-run In [2], In [3]").click()
    expect(notebook.cell(2).locator(".jp-OutputArea")).to_contain_text("passed cuda:0")
    assert notebook.source(1) == CELLS[1].replace("cpu", "cuda:0")

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
    expect(notebook.cell(1).locator(".jp-InputPrompt")).to_have_text("[4]:")
    expect(notebook.cell(2).locator(".jp-InputPrompt")).to_have_text("[5]:")
    expect(notebook.cells).to_have_count(4)


def test_main_button_of_a_repair_inserts_and_runs_it(open_notebook):
    notebook = open_notebook(CELLS)
    fail(notebook).get_by_role("button", name="repair & re-run In [3]").click()
    expect(notebook.cell(2).locator(".jp-OutputArea")).to_contain_text("passed cuda:0")
    assert notebook.source(3) == "labels.device = 'cuda:0'"
    assert notebook.source(1) == CELLS[1]


def test_main_button_stops_at_the_first_failure(open_notebook):
    notebook = open_notebook([f"{CELLS[0]}\npanels.fixes_break = True", *CELLS[1:]])
    live = fail(notebook)
    live.get_by_role("button", name="fix & re-run In [2], In [3]").click()
    expect(notebook.cell(1).locator(".jp-OutputArea")).to_contain_text("ValueError: broken")
    expect(live.locator(".ipd-status")).to_contain_text("A cell failed again")
    assert notebook.prompt(2) == "[3]:"


def test_insert_while_the_kernel_is_busy(open_notebook):
    notebook = open_notebook([*CELLS[:3], "import time; time.sleep(60)"])
    live = fail(notebook)
    notebook.cell(3).locator(".cm-content").click()
    notebook.page.keyboard.press("Control+Enter")
    expect(notebook.cell(3).locator(".jp-InputPrompt")).to_have_text("[*]:")
    live.get_by_role("button", name="insert: make labels").click()
    expect(notebook.cells).to_have_count(5)
    expect(notebook.cell(4).locator(".jp-InputPrompt")).to_have_text("[*]:")


def test_in_an_output_view_the_fix_goes_into_the_notebook(open_notebook):
    notebook = open_notebook(CELLS)
    live = fail(notebook)
    live.locator(".ipd-heading").click(button="right")
    notebook.page.get_by_text("Create New View for Cell Output").click()
    view = notebook.page.locator(".jp-LinkedOutputView .ipydevice-live")
    expect(view).to_be_visible()
    view.get_by_role("button", name="fix & re-run In [2], In [3]").click()
    expect(notebook.cell(2).locator(".jp-OutputArea")).to_contain_text("passed cuda:0")
    assert notebook.source(1) == CELLS[1].replace("cpu", "cuda:0")


def test_insert_makes_a_cell_below_and_undo_takes_it_away(open_notebook):
    notebook = open_notebook(CELLS)
    live = fail(notebook)
    live.get_by_role("button", name="insert: make labels on cuda:0").click()
    expect(notebook.cells).to_have_count(5)
    expect(live.get_by_role("status").last).to_contain_text("Inserted below")
    assert notebook.source(3) == "# replaces In [2]; then run In [3]\n" + CELLS[1].replace("cpu", "cuda:0")
    notebook.page.keyboard.press("Control+Enter")  # the new cell is the active one
    expect(notebook.cell(3).locator(".jp-InputPrompt")).to_have_text("[4]:")
    notebook.run(2)
    expect(notebook.cell(2).locator(".jp-OutputArea")).to_contain_text("passed cuda:0")
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


def test_copy_puts_the_same_text_on_the_clipboard(open_notebook):
    notebook = open_notebook(CELLS)
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    live = fail(notebook)
    live.get_by_role("button", name="copy: make labels").click()
    expect(live.get_by_role("status").last).to_contain_text("Copied")
    copied = notebook.page.evaluate("navigator.clipboard.readText()")
    assert copied == "# replaces In [2]; then run In [3]\n" + CELLS[1].replace("cpu", "cuda:0")


def test_the_fix_stays_in_its_own_notebook(open_notebook, jupyter):
    """Two notebooks with equal cells; the button of the hidden one is pressed while the other is in front."""
    jupyter.write("other.ipynb", CELLS)
    notebook = open_notebook(CELLS)
    fail(notebook)
    page = notebook.page
    page.get_by_role("listitem", name="other.ipynb").or_(
        page.locator("[data-path], .jp-DirListing-item", has_text="other.ipynb")
    ).first.dblclick()
    other = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(other.locator(".jp-Cell")).to_have_count(4)
    page.evaluate("document.querySelector('.ipydevice-live button[aria-label^=insert]').click()")
    page.get_by_role("tab", name="test_the_fix_stays").click()
    expect(notebook.cells).to_have_count(5)
    page.get_by_role("tab", name="other.ipynb").click()
    expect(other.locator(".jp-Cell")).to_have_count(4)


def test_after_a_kernel_restart_the_buttons_still_work(open_notebook, jupyter):
    notebook = open_notebook(CELLS)
    live = fail(notebook)
    (session,) = (s for s in jupyter.get("/api/sessions") if s["path"] == notebook.name)
    jupyter.send("POST", f"/api/kernels/{session['kernel']['id']}/restart")
    notebook.wait()
    live.get_by_role("button", name="insert: make labels").click()
    expect(notebook.cells).to_have_count(5)


def test_when_the_live_panel_goes_the_static_one_returns(open_notebook):
    notebook = open_notebook([*CELLS[:3], "from ipydevice.show import as_widget\nas_widget._live.pop().close()"])
    fail(notebook)
    static = notebook.cell(2).locator(".ipydevice-static")
    expect(static).to_be_hidden()
    notebook.run(3)
    expect(static).to_be_visible()
    expect(notebook.live(2)).to_have_count(0)


def test_opened_again_after_the_kernel_has_gone_the_static_panel_is_there(open_notebook, jupyter):
    notebook = open_notebook(CELLS)
    fail(notebook)
    notebook.page.keyboard.press("Control+s")
    expect(notebook.page.locator(".jp-mod-dirty")).to_have_count(0)
    notebook.page.goto("about:blank")
    jupyter.end_kernels()
    again = type(notebook)(notebook.page, jupyter, notebook.name)
    static = again.cell(2).locator(".ipydevice-static")
    expect(static).to_be_visible()
    expect(static).to_contain_text("labels is on cpu, logits is on cuda:0")


def test_palette_entry_applies_the_first_fix(open_notebook):
    notebook = open_notebook(CELLS)
    fail(notebook)
    page = notebook.page
    page.keyboard.press("Control+Shift+c")
    palette = page.locator("#modal-command-palette")
    palette.locator("input").fill("Device fix")
    palette.get_by_text("Device fix: apply").click()
    expect(notebook.cell(2).locator(".jp-OutputArea")).to_contain_text("passed cuda:0")


def test_notebook_7(open_notebook, notebook_7):
    notebook = open_notebook(CELLS, notebook_7)
    live = fail(notebook)
    live.locator(".ipd-table > summary").click()
    live.get_by_role("treegrid").locator("[data-k]").first.click()
    for key in ("b", "m", "d", "d"):
        notebook.page.keyboard.press(key)
    expect(notebook.cells).to_have_count(4)
    live.get_by_role("button", name="fix & re-run In [2], In [3]").click()
    expect(notebook.cell(2).locator(".jp-OutputArea")).to_contain_text("passed cuda:0")

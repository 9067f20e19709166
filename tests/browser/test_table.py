"""The table: keyboard, sizes, what a screen reader finds, hostile names, themes."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from axe_playwright_python.sync_playwright import Axe
from panels import CELLS
from playwright.sync_api import expect

LOAD = "%load_ext panels\nimport panels"


def shown(open_notebook, call):
    notebook = open_notebook([LOAD, call, "'last'"])
    notebook.run(0)
    notebook.run(1)
    live = notebook.live(1)
    expect(live).to_be_visible()
    return notebook, live


def test_ten_thousand_rows_by_keyboard(open_notebook):
    notebook, live = shown(open_notebook, "panels.many()")
    keyboard = notebook.page.keyboard
    grid = live.get_by_role("treegrid")
    expect(grid).to_be_visible()
    rows = grid.locator("[data-k]")
    assert rows.count() < 60
    assert grid.get_attribute("aria-rowcount") == "2"  # model is folded
    rows.first.click()
    assert int(grid.get_attribute("aria-rowcount")) > 1000
    focused = grid.locator("[data-k]:focus")
    keyboard.press("End")
    expect(focused).to_contain_text("model.layer999")
    expect(focused).to_be_in_viewport()
    keyboard.press("ArrowRight")
    expect(focused).to_have_attribute("aria-expanded", "true")
    keyboard.press("ArrowRight")
    expect(focused).to_contain_text("model.layer999.p0")
    keyboard.press("ArrowLeft")
    expect(focused).to_contain_text("layer999")
    keyboard.press("ArrowLeft")
    expect(focused).to_have_attribute("aria-expanded", "false")
    keyboard.press("PageUp")
    keyboard.press("Home")
    expect(focused).to_contain_text("on two devices")
    expect(live.locator(".ipd-detail")).to_have_text("model · cuda:0 + cpu · on two devices")
    # JupyterLab's own one-letter commands: insert, delete, Markdown, cut
    for key in ("b", "a", "m", "x", "d", "d"):
        keyboard.press(key)
    expect(notebook.cells).to_have_count(3)
    expect(notebook.cell(1).locator(".jp-InputPrompt")).to_have_text("[2]:")
    live.get_by_role("searchbox").fill("layer77 cpu")
    expect(live.get_by_role("status").first).to_have_text("11 names")  # layer77 and layer770 to layer779
    live.get_by_role("searchbox").fill("")
    grid.get_by_role("button", name="bytes").click()
    grid.get_by_role("button", name="bytes").click()
    expect(grid.locator("[data-k='0']")).to_contain_text("layer999")
    expect(grid.get_by_role("columnheader", name="bytes")).to_have_attribute("aria-sort", "descending")
    keyboard.press("Control+s")
    expect(notebook.page.locator(".jp-mod-dirty")).to_have_count(0)


def test_a_hundred_thousand_rows(open_notebook):
    _, live = shown(open_notebook, "panels.many(100_000)")
    grid = live.get_by_role("treegrid")
    rows = grid.locator("[data-k]")
    expect(rows.first).to_contain_text("model")
    rows.first.click()
    live.get_by_role("button", name="unfold all").click()
    expect(grid).to_have_attribute("aria-rowcount", "100002")  # with the head and the model itself
    assert rows.count() < 60
    rows.nth(2).press("End")
    expect(grid.locator("[data-k]:focus")).to_contain_text("model.layer9999.p8")
    live.get_by_role("searchbox").fill("layer9999.p7")
    expect(grid.locator("[data-k]").last).to_contain_text("model.layer9999.p7")
    expect(live.get_by_role("status").first).to_have_text("1 name")


@pytest.mark.parametrize(("count", "said"), [(0, "no tensor, module or optimizer"), (1, "1 name with a device")])
def test_none_or_one(open_notebook, count, said):
    _, live = shown(open_notebook, f"panels.few({count})")
    expect(live).to_contain_text(said)
    expect(live.get_by_role("treegrid")).to_have_count(count)
    expect(live.locator("[data-k]")).to_have_count(count)


def test_hostile_names_are_text_in_the_page(open_notebook):
    notebook, live = shown(open_notebook, "panels.hostile()")
    live.locator(".ipd-table > summary").click()
    live.locator(".ipd-why > summary").click()
    expect(live.get_by_role("treegrid").locator("[data-k]")).to_have_count(2)
    assert live.locator("img, script").count() == 0
    assert notebook.page.evaluate("typeof hacked") == "undefined"
    live.get_by_role("button", name="insert").click()
    expect(notebook.cells).to_have_count(5)
    assert notebook.page.evaluate("typeof hacked") == "undefined"


THEMES = ["JupyterLab Dark High Contrast", "JupyterLab Dark", "JupyterLab Light"]  # the last one stays


@pytest.mark.parametrize("theme", THEMES)
def test_nothing_serious_for_axe(open_notebook, jupyter, theme):
    if "Contrast" in theme and version("jupyterlab").startswith("4.0."):
        pytest.skip("JupyterLab has this theme since 4.2")
    jupyter.use_theme(theme)
    notebook = open_notebook(CELLS)
    for index in range(3):
        notebook.run(index)
    live = notebook.live(2)
    assert notebook.page.evaluate("document.body.dataset.jpThemeName") == theme
    for summary in live.locator("summary").all():
        if summary.locator("..").get_attribute("open") is None:
            summary.click()
    found = Axe().run(notebook.page, context=".ipydevice-live").response["violations"]
    assert [v["id"] + " " + v["nodes"][0]["html"] for v in found if v["impact"] in ("serious", "critical")] == []


def test_a_narrow_page_needs_no_sideways_scrolling(open_notebook):
    notebook = open_notebook(CELLS)
    for index in range(3):
        notebook.run(index)
    notebook.page.set_viewport_size({"width": 560, "height": 800})
    live = notebook.live(2)
    live.locator(".ipd-table > summary").click()
    assert live.evaluate("node => node.scrollWidth <= node.clientWidth")
    assert live.evaluate("node => node.getBoundingClientRect().right <= innerWidth")


def test_a_fix_of_the_table_is_inserted_and_run(open_notebook):
    setup = """%load_ext ipydevice
import torch
%devices --virtual 1
net = torch.nn.Sequential(torch.nn.Linear(2, 2).cuda(), torch.nn.Linear(2, 2))"""
    notebook = open_notebook([setup, "%devices", "%devices --odd --plain"])
    notebook.run(0)
    notebook.run(1)
    live = notebook.live(1)
    expect(live).to_be_visible()
    expect(live.locator(".ipd-strip")).to_be_visible()
    live.get_by_role("button", name="insert & run: `net.to('cuda:0')`").click()
    expect(notebook.cells).to_have_count(4)
    expect(notebook.cell(2).locator(".jp-InputPrompt")).to_have_text("[3]:")
    assert notebook.source(2) == "net.to('cuda:0')"
    notebook.run(3)
    expect(notebook.cell(3).locator(".jp-OutputArea")).to_contain_text("nothing odd")

"""What a person does with the table of ``%devices`` in JupyterLab."""

from __future__ import annotations

from playwright.sync_api import expect

SETUP = """%load_ext ipydevice
%devices --virtual 1
import torch
from torch import nn"""
MODEL = "net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))"
MOVE = "net[0].to('cuda:0');"


def test_an_edit_changes_the_cell_and_runs_what_depends_on_it(open_notebook):
    notebook = open_notebook([SETUP, MODEL, MOVE, "%devices"])
    for index in range(4):
        notebook.run(index)
    live = notebook.live(3)
    expect(live).to_contain_text("1 name with a device, 1 odd")
    fix = live.locator("[data-fix='0']")
    expect(fix).to_contain_text("move net where it is made")
    fix.get_by_role("button", name="fix & re-run In [2], In [3]").click()
    expect(notebook.cell(1).locator(".cm-content")).to_contain_text('.to("cuda:0")')
    expect(notebook.cell(2).locator(".jp-InputPrompt")).to_have_text("[6]:")
    notebook.run(3)
    expect(notebook.live(3)).to_contain_text("1 name with a device")
    expect(notebook.live(3)).not_to_contain_text("odd")


def test_a_hundred_thousand_names_of_a_workspace(open_notebook):
    names = "globals().update({f't{i}': torch.ones(1) for i in range(100_000)})"
    notebook = open_notebook([SETUP, names, "%devices"])
    for index in range(3):
        notebook.run(index)
    grid = notebook.live(2).get_by_role("treegrid")
    rows = grid.locator("[data-k]")
    expect(rows.first).to_contain_text("t0")
    expect(grid).to_have_attribute("aria-rowcount", "100001")
    assert rows.count() < 60
    rows.first.click()
    rows.nth(2).press("End")
    expect(grid.locator("[data-k]:focus")).to_contain_text("t99999")

"""What a person does with the report of ``%%devicecheck`` in JupyterLab."""

from __future__ import annotations

from playwright.sync_api import expect

SETUP = """%load_ext ipydevice
%devices --virtual 1
import torch, time
from ipydevice.show import progress
progress.SHORT = progress.EVERY = 0.3
device = 'cuda:0'; x = torch.ones(3, device=device);"""
CHECKED = """%%devicecheck
shift = torch.ones(3)
y = x + shift
z = torch.cat([x, torch.zeros(2)])
time.sleep(1)
print('the end of the cell')"""


def test_fixes_have_buttons_and_progress_goes_away(open_notebook):
    notebook = open_notebook([SETUP, CHECKED])
    notebook.run(0)
    cell = notebook.cell(1)
    cell.locator(".cm-content").click()
    notebook.page.keyboard.press("Control+Enter")
    expect(cell.locator(".jp-OutputArea")).to_contain_text("2 device mistakes so far")
    live = notebook.live(1)
    expect(live).to_be_visible()
    expect(live).to_contain_text("2 device mistakes in In [2]")
    expect(cell.locator(".jp-OutputArea")).not_to_contain_text("so far")
    expect(cell.locator(".ipydevice-static")).to_be_hidden()
    numbers = [item.get_attribute("value") for item in live.locator("[data-fix]").all()]
    assert numbers == [str(n + 1) for n in range(len(numbers))] and len(numbers) >= 4
    for item in live.locator("[data-fix]").all():
        assert item.get_by_role("button").all_inner_texts()[1:] == ["insert", "copy"]
    live.get_by_role("button", name="fix & re-run In [2]: all at once").click()
    expect(notebook.live(1)).to_contain_text("no device mistake in In [3]")
    source = notebook.source(1)
    assert source.startswith("%%devicecheck\n")
    assert "shift = torch.ones(3, device=device)" in source and "torch.zeros(2, device=device)" in source
    expect(cell.locator(".jp-OutputArea")).to_contain_text("the end of the cell")


def test_one_fix_of_several(open_notebook):
    notebook = open_notebook([SETUP, CHECKED])
    notebook.run(0)
    notebook.run(1)
    live = notebook.live(1)
    expect(live).to_contain_text("2 device mistakes in In [2]")
    live.locator("[data-fix='1']").get_by_role("button").first.click()
    expect(notebook.live(1)).to_contain_text("1 device mistake in In [3]")

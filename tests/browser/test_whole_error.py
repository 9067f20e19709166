"""Buttons that concern the error as a whole, with real errors on virtual GPUs."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

SETUP = """%load_ext ipydevice
import torch
%devices --virtual 1
images = torch.zeros(1024, 1024)
weights = torch.zeros(1024, 1024, device='cuda:0')
targets = torch.zeros(8, device='cuda:0')"""
# Two mistakes: who mends the first meets the second.
FAIL = """def step():
    held = torch.zeros(2**20, device='cuda:0')
    return images @ weights
step()
labels = torch.zeros(8)
labels + targets
print('passed')"""


def failed(open_notebook, *server):
    notebook = open_notebook([SETUP, FAIL, "'last'"], *server)
    notebook.run(0)
    notebook.run(1)
    live = notebook.live(1)
    expect(live).to_contain_text("images is on cpu")
    return notebook, live


def said(live):
    return live.locator(".ipd-status")


def test_the_report_is_copied(open_notebook):
    notebook, live = failed(open_notebook)
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    live.get_by_role("button", name="copy as report").click()
    expect(said(live)).to_contain_text("on the clipboard")
    copied = notebook.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("### images is on cpu, weights is on cuda:0\n")
    for part in ("return images @ weights", "**versions** ipydevice", "**devices** cuda:0 Virtual GPU"):
        assert part in copied
    assert notebook.jupyter.root.as_posix() not in copied


def test_the_error_is_forgotten_by_a_click(open_notebook):
    _, live = failed(open_notebook)
    forget = live.get_by_role("button", name="forget the error")
    expect(forget).to_have_text("forget the error: frees 4.0 MiB on cuda:0")
    forget.click()
    expect(said(live)).to_contain_text("4.0 MiB on cuda:0 can be used again")
    expect(forget).to_be_hidden()


@pytest.mark.parametrize("server", ["jupyter", "plain_jupyter", "notebook_7"])
def test_fix_and_check_the_rest_finds_the_second_mistake(open_notebook, server, request):
    notebook, live = failed(open_notebook, request.getfixturevalue(server))
    before = notebook.prompt(1)
    live.get_by_role("button", name="fix & check the rest").first.click()
    notebook.wait_for_run(1, before)
    report = notebook.live(1)
    expect(report).to_contain_text("1 device mistake")
    expect(report).to_contain_text("labels is on cpu")
    expect(notebook.cell(1).locator(".jp-OutputArea")).to_contain_text("passed")
    assert notebook.source(1).startswith("%%devicecheck\n")
    assert "images" in notebook.source(1)
    expect(notebook.cells).to_have_count(3)
    before = notebook.prompt(1)
    report.get_by_role("button", name="fix & re-run").first.click()
    notebook.wait_for_run(1, before)
    expect(notebook.live(1)).to_contain_text("no device mistake")


def test_the_same_error_again_is_a_line_that_opens(open_notebook):
    notebook, _ = failed(open_notebook)
    notebook.run(1)
    live = notebook.live(1)
    line = live.locator(".ipd-fold > summary")
    expect(line).to_contain_text("images is on cpu, weights is on cuda:0")
    button = live.get_by_role("button", name="fix & re-run").first
    expect(button).to_be_hidden()
    line.click()
    expect(button).to_be_visible()
    live.locator(".ipd-table > summary").click()
    expect(live.get_by_role("treegrid")).to_contain_text("held")

"""The panel in the dark theme beside a stored picture. IPYDEVICE_REGEN=1 takes a new one; look at it."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from conftest import Jupyter
from panels import CELLS
from playwright.sync_api import expect

PICTURE = Path(__file__).with_name("dark.png")
TAKEN_WITH = PICTURE.with_suffix(".json")  # fonts and browsers draw differently: only like is compared with like
MOST = 0.005  # of the pixels may differ
DIFFERENCE = """
async ([one, other]) => {
  const pixels = async (data) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    return { size: [image.width, image.height], data: context.getImageData(0, 0, image.width, image.height).data };
  };
  const [a, b] = [await pixels(one), await pixels(other)];
  if (String(a.size) !== String(b.size)) return `${a.size} instead of ${b.size}`;
  let differing = 0;
  for (let i = 0; i < a.data.length; i += 4) {
    if ([0, 1, 2].some((c) => Math.abs(a.data[i + c] - b.data[i + c]) > 32)) differing++;
  }
  return differing / (a.data.length / 4);
}
"""
# How wide some texts are drawn tells which fonts are there.
FONTS = """
() => ['13px system-ui', '12px monospace'].map((font) => {
  const context = document.createElement('canvas').getContext('2d');
  context.font = font;
  return context.measureText('labels is on cpu, logits is on cuda:0').width;
})
"""


@pytest.fixture
def dark(jupyter: Jupyter) -> Iterator[None]:
    jupyter.use_theme("JupyterLab Dark")
    yield
    jupyter.use_theme("JupyterLab Light")


@pytest.mark.usefixtures("dark")
def test_the_dark_panel_looks_as_stored(open_notebook, browser):
    notebook = open_notebook(CELLS)
    page = notebook.page
    for index in range(3):
        notebook.run(index)
    live = notebook.live(2)
    expect(live).to_be_visible()
    assert page.evaluate("document.body.dataset.jpThemeName") == "JupyterLab Dark"
    page.mouse.move(0, 0)
    live.scroll_into_view_if_needed()
    shot = live.screenshot(animations="disabled")
    here = {
        "chromium": browser.version.partition(".")[0],
        "jupyterlab": version("jupyterlab"),
        "fonts": page.evaluate(FONTS),
    }
    if os.environ.get("IPYDEVICE_REGEN"):
        PICTURE.write_bytes(shot)
        TAKEN_WITH.write_text(json.dumps(here) + "\n")
    stored = json.loads(TAKEN_WITH.read_text())
    if stored != here:
        pytest.skip(f"the stored picture was taken with {stored}, and this is {here}")
    differing = page.evaluate(DIFFERENCE, [base64.b64encode(one).decode() for one in (shot, PICTURE.read_bytes())])
    assert isinstance(differing, float | int), differing
    assert differing <= MOST

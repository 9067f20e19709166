"""Take the moving picture for the README: python tests/browser/take_moving_picture.py [notebooks/panel.gif]

A real session: the quickstart in JupyterLab, run up to its first failing cell, and mended by a click. Needs Pillow.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from conftest import CHROMIUM, FLAGS, ROOT, Jupyter, Notebook
from PIL import Image
from playwright.sync_api import Locator, Page, sync_playwright

QUICKSTART = ROOT / "notebooks" / "quickstart.ipynb"
WIDTH, HEIGHT = 1000, 760  # CSS pixels; narrower, and the toolbar hides the sign that the kernel is idle
COLOURS = 96
LIMIT = 1_000_000  # bytes; a README is loaded often

# The mouse is not in a screenshot.
POINTER = """() => {
  const pointer = document.createElement("div");
  pointer.id = "pointer";
  pointer.innerHTML = `<svg width="22" height="28" viewBox="0 0 22 28"><path d="M2 2v20l5-5 3 8 4-2-3-7h7z"
    fill="black" stroke="white" stroke-width="1.5"/></svg>`;
  pointer.style = "position:fixed;z-index:99999;pointer-events:none;left:-50px;top:0";
  document.body.append(pointer);
  document.addEventListener("mousemove", event => {
    pointer.style.left = event.clientX + "px";
    pointer.style.top = event.clientY + "px";
  }, true);
}"""

Frame = tuple[Image.Image, int]  # and how many milliseconds it stays


def take(target: Path) -> None:
    """Raises RuntimeError when the picture has become too large for a README."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        jupyter = Jupyter(Path(folder))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            frames = list(_session(page, jupyter))
        finally:
            browser.close()
            jupyter.stop()
    _write(frames, target)
    if target.stat().st_size > LIMIT:
        raise RuntimeError(f"{target} has {target.stat().st_size:,} bytes, and may have {LIMIT:,}")


def _session(page: Page, jupyter: Jupyter) -> Iterator[Frame]:
    notebook = nbformat.read(QUICKSTART, as_version=4)
    load, failing = ([cell.id for cell in notebook.cells].index(name) for name in ("load", "training-loop"))
    # A short traceback: the usual one names the folders of the machine that takes the picture.
    notebook.cells[load].source += "\n%xmode Minimal"
    nbformat.write(notebook, jupyter.root / QUICKSTART.name)
    opened = Notebook(page, jupyter, QUICKSTART.name)
    page.keyboard.press("Control+b")  # without the file browser
    page.evaluate(POINTER)
    for index in range(failing):
        if notebook.cells[index].cell_type == "code":
            opened.run(index)
    cell = opened.cell(failing)
    _to_the_top(cell)
    cell.locator(".cm-content").click()
    yield _frame(page, 1800)

    before = opened.prompt(failing)
    page.keyboard.press("Control+Enter")
    opened.wait_for_run(failing, before)
    opened.live(failing).wait_for()
    _to_the_top(cell)
    yield _frame(page, 5000)

    button = opened.live(failing).get_by_role("button", name="fix & re-run").first
    yield from _move(page, button)
    before = opened.prompt(failing)
    button.click()
    opened.wait_for_run(failing, before)
    cell.get_by_text("loss 0.").or_(cell.get_by_text("loss 1.")).last.wait_for()
    _to_the_top(cell)
    page.wait_for_timeout(500)
    yield _frame(page, 5000)


def _to_the_top(cell: Locator) -> None:
    cell.evaluate("cell => cell.scrollIntoView({block: 'start'})")
    cell.page.wait_for_timeout(300)


def _move(page: Page, button: Locator) -> Iterator[Frame]:
    """The mouse on its way to the middle of a button."""
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box is not None
    end = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    start = WIDTH * 0.8, HEIGHT * 0.9
    steps = 6
    for step in range(steps + 1):
        share = step / steps
        page.mouse.move(*(a + (b - a) * share for a, b in zip(start, end, strict=True)))
        yield _frame(page, 1200 if step == steps else 90)


def _frame(page: Page, milliseconds: int) -> Frame:
    image = Image.open(io.BytesIO(page.screenshot(animations="disabled", caret="hide")))
    return image.convert("RGB"), milliseconds


def _write(frames: list[Frame], target: Path) -> None:
    """With one palette for all, or colours would flicker."""
    together = Image.new("RGB", (WIDTH, HEIGHT * len(frames)))
    for number, (image, _) in enumerate(frames):
        together.paste(image, (0, HEIGHT * number))
    palette = together.quantize(COLOURS)
    images = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image, _ in frames]
    first, *rest = images
    durations = [milliseconds for _, milliseconds in frames]
    first.save(target, save_all=True, append_images=rest, duration=durations, loop=0, optimize=True)


if __name__ == "__main__":
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "notebooks" / "panel.gif")

"""Take the picture of the panel for the README: python tests/browser/take_picture.py [notebooks/panel.png]

The notebook is the quickstart, run in a real JupyterLab up to its first failing cell.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from conftest import CHROMIUM, FLAGS, ROOT, Jupyter, Notebook
from playwright.sync_api import sync_playwright

QUICKSTART = ROOT / "notebooks" / "quickstart.ipynb"


def take(target: Path) -> None:
    notebook = nbformat.read(QUICKSTART, as_version=4)
    load, failing = ([cell.id for cell in notebook.cells].index(name) for name in ("load", "training-loop"))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        jupyter = Jupyter(Path(folder))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            # A short traceback: the usual one names the folders of the machine that takes the picture.
            notebook.cells[load].source += "\n%xmode Minimal"
            nbformat.write(notebook, jupyter.root / QUICKSTART.name)
            page = browser.new_page(viewport={"width": 1000, "height": 1500}, device_scale_factor=2)
            opened = Notebook(page, jupyter, QUICKSTART.name)
            page.keyboard.press("Control+b")  # without the file browser
            for index in range(failing + 1):
                if notebook.cells[index].cell_type == "code":
                    opened.run(index)
            opened.live(failing).wait_for()
            page.mouse.move(0, 0)  # no toolbar over the code
            opened.cell(failing).screenshot(path=target)
        finally:
            browser.close()
            jupyter.stop()


if __name__ == "__main__":
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "notebooks" / "panel.png")

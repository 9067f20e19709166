"""What it costs to show a panel. Ratios within one run; nothing is asserted.

python tests/benchmarks/bench_show.py            the three views, and the table in a page
python tests/benchmarks/bench_show.py --no-page  without JupyterLab and Chromium
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "browser"))
sys.path.insert(0, str(ROOT / "tests" / "show"))
sys.path.insert(0, str(ROOT))

import views  # noqa: E402
from IPython.core.ultratb import FormattedTB  # noqa: E402

from ipydevice import show  # noqa: E402
from ipydevice.diagnosis import Inventory, Row  # noqa: E402
from ipydevice.show import as_widget, front_end  # noqa: E402

RUNS = 15
COUNTS = (100, 1_000, 10_000)
PAGES = 3  # fresh pages for each size, since the first painting of a page is what a person sees


def median(work: Callable[[], object], runs: int = RUNS) -> float:
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def line(name: str, seconds: float, unit: float) -> None:
    print(f"{name:<52} {seconds * 1e3:9.2f} ms {seconds / unit:9.2f}")


def traceback_of_three_frames() -> float:
    """What IPython takes in its usual mode for the traceback above the panel."""

    def inner() -> None:
        json.loads("{")

    formatter = FormattedTB(mode="Context")
    try:
        inner()
    except ValueError as caught:
        error = caught
    return median(lambda: formatter.structured_traceback(type(error), error, error.__traceback__))


def panels() -> None:
    unit = traceback_of_three_frames()
    line("IPython's traceback (Context, 3 frames)", unit, unit)
    view = views.STANDARD
    line("panel as text", median(lambda: show.text(view)), unit)
    line("panel as static HTML", median(lambda: show.html(view)), unit)
    line("whole static output", median(lambda: front_end.bundle(view, show.tree_of(view), "x")), unit)
    line("what the widget gets", median(lambda: as_widget.data(view, show.tree_of(view), "x")), unit)
    line("report to copy", median(lambda: show.markdown(view)), unit)


def tables() -> None:
    rows = tuple(
        Row(f"m.l{i // 10}.p{i % 10}", "parameter", "cuda:0", shape=(i, 3), dtype="float32") for i in range(10_000)
    )
    view = Inventory(rows, {"cuda:0": 1})
    unit = median(lambda: json.dumps(view.to_dict()), 3)
    line("10,000 rows: json.dumps of to_dict()", unit, unit)
    line("10,000 rows: what the widget gets", median(lambda: as_widget.rows(show.tree_of(view)), 3), unit)
    line("10,000 rows: whole static output", median(lambda: front_end.bundle(view, show.tree_of(view), "x"), 3), unit)


# Each peer has shown something small before, so that its scripts are loaded.
SETUP = """\
%load_ext panels
import panels, html
from IPython.display import HTML
panels.many(10)
def plain(n):
    rows = [(f'model.layer{i}.p', 'parameter', 'cuda:0', '[1]', 'float32', i) for i in range(n)]
    return HTML('<table>' + ''.join('<tr>' + ''.join(f'<td>{c}' for c in row) for row in rows) + '</table>')
"""
GRID = """\
import ipydatagrid, pandas
def grid(n):
    return ipydatagrid.DataGrid(pandas.DataFrame({'name': [f'model.layer{i}.p' for i in range(n)], 'device': 'cuda:0'}))
display(grid(10))
"""


def pages() -> None:
    """From the keystroke that runs the cell to the painted table."""
    from conftest import CHROMIUM, FLAGS, Jupyter, Notebook
    from playwright.sync_api import sync_playwright

    peers = {"panel": ("panels.many({})", ".ipydevice-live [data-k]"), "HTML table": ("plain({})", "td")}
    setup = SETUP
    if find_spec("ipydatagrid"):
        setup += GRID
        peers["ipydatagrid"] = ("grid({})", "canvas")
    else:
        print("ipydatagrid is not installed here: left out")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        jupyter = Jupyter(Path(folder))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for count in COUNTS:
            seconds: dict[str, list[float]] = {name: [] for name in peers}
            for turn in range(PAGES):
                for name, (call, shown) in peers.items():
                    page = browser.new_page(viewport={"width": 1200, "height": 900})
                    path = f"{name.replace(' ', '')}{count}-{turn}.ipynb"
                    jupyter.write(path, [setup, call.format(count)])
                    notebook = Notebook(page, jupyter, path)
                    notebook.run(0)
                    cell = notebook.cell(1)
                    cell.locator(".cm-content").click()
                    start = time.perf_counter()
                    page.keyboard.press("Control+Enter")
                    cell.locator(f".jp-OutputArea-output {shown}").first.wait_for()
                    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
                    seconds[name].append(time.perf_counter() - start)
                    page.close()
                    jupyter.end_kernels()
            unit = statistics.median(seconds["panel"])
            for name, taken in seconds.items():
                line(f"{count:,} rows, keystroke to paint: {name}", statistics.median(taken), unit)
        browser.close()
        jupyter.stop()


if __name__ == "__main__":
    panels()
    tables()
    if "--no-page" not in sys.argv:
        pages()

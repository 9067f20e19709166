"""What reaches the front end, with no front end there: mime bundles, terminals, saved files."""

from __future__ import annotations

import dataclasses
import io
import json
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import nbconvert
import nbformat
import pytest
from nbclient import NotebookClient
from views import HOSTILE, SPLIT, STANDARD, VIEWS, WORKSPACE

from ipydevice import show
from ipydevice.diagnosis import MIME_TYPE, Row
from ipydevice.report import CheckReport
from ipydevice.show import as_widget, front_end

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.mark.parametrize("name", VIEWS)
def test_the_static_bundle_can_be_sent_and_saved(name):
    view = VIEWS[name]
    bundle = front_end.bundle(view, show.tree_of(view), "abc")
    assert set(bundle) == {"text/plain", "text/html", MIME_TYPE}
    json.dumps(bundle, ensure_ascii=False).encode()
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("x", outputs=[nbformat.v4.new_output("display_data", bundle)])]
    )
    nbformat.validate(notebook)


def test_three_hundred_rows_take_less_than_sixty_kilobytes_in_the_file():
    rows = tuple(
        Row(f"model.layer{i}.weight", "parameter", "cuda:0", "In [7]", True, (64, 64), "float32", i) for i in range(300)
    )
    view = dataclasses.replace(STANDARD, placements=rows)
    output = nbformat.v4.new_output("display_data", front_end.bundle(view, show.tree_of(view), "abc"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=[output])])
    assert len(nbformat.writes(notebook)) < 60_000


def test_machines_read_the_diagnosis_beside_the_panel():
    machine = front_end.bundle(STANDARD, show.tree_of(STANDARD), "abc")[MIME_TYPE]
    assert machine["failed"]["cell_source"] == STANDARD.failed_cell_source
    assert machine["cause"] == "label_not_moved"
    assert machine["fixes"][0]["edits"][0]["after"] == STANDARD.fixes[0].edits[0].after


@pytest.mark.parametrize(("view", "name"), [(STANDARD, "diagnosis"), (SPLIT, "inventory"), (CheckReport(), "check")])
def test_every_key_is_documented(view, name):
    machine = front_end.bundle(view, show.tree_of(view), "abc")[MIME_TYPE]
    document = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
    assert machine["type"] == name
    assert [key for key in keys_of(machine) if f"`{key}`" not in document] == []


def keys_of(value):
    """All keys in nested JSON; those of `bytes_by_device` are devices."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key != "bytes_by_device":
                yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def test_rows_beyond_twelve_are_counted_for_machines():
    rows = tuple(Row(f"x{i}", "tensor", "cpu") for i in range(60))
    view = dataclasses.replace(STANDARD, placements=rows, placements_left=7)
    machine = front_end.bundle(view, show.tree_of(view), "abc")[MIME_TYPE]
    assert (len(machine["placements"]), machine["placements_left"]) == (12, 55)


def rows_of(view):
    return inflated(as_widget.rows(show.tree_of(view)))


def inflated(trait):
    return json.loads(zlib.decompress(trait))


def test_the_page_gets_texts_escaped_and_code_as_it_is():
    data = inflated(as_widget.data(HOSTILE, show.tree_of(HOSTILE), "abc"))
    assert "<script" not in data["html"]
    assert "\x1b" not in json.dumps(rows_of(HOSTILE))
    assert data["fixes"][0]["edits"][0]["before"] == HOSTILE.fixes[0].edits[0].before.replace("\ud800", "?")


def test_the_page_draws_the_rows_itself():
    data = inflated(as_widget.data(WORKSPACE, show.tree_of(WORKSPACE), "abc"))
    assert "model.pe" not in data["html"]
    assert data["tables"] == [{"left": WORKSPACE.left, "atLeast": False}]
    assert [row[0] for row in rows_of(WORKSPACE)[0]] == [row.name for row in WORKSPACE.rows]


def test_a_code_page_without_our_signs_gets_others():
    text = front_end.printable("✗ ─── · 漢", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert text == "x --- * ?"
    assert front_end.printable("✗", SimpleNamespace(encoding=None)) == "✗"


def test_plain_python_gets_plain_text():
    run = subprocess.run(
        [sys.executable, "-c", "import views; from ipydevice import show; show.display(views.STANDARD)"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
    )
    assert run.stdout == show.text(STANDARD) + "\n"


@pytest.mark.parametrize("module", ["torch", "ipywidgets", "anywidget", "nbformat", "IPython"])
def test_text_and_html_load_no(module):
    code = "import sys, views; from ipydevice import show; show.html(views.STANDARD); print(*sys.modules)"
    env = {"PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], check=True, env=env, capture_output=True, text=True)
    assert "ipydevice.show" in run.stdout.split()
    assert module not in run.stdout.split()


def execute(*cells: str, tmp_path) -> nbformat.NotebookNode:
    setup = f"import sys; sys.path[:0] = {sys.path!r}; import views; from ipydevice import show"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in (setup, *cells)])
    NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    return notebook


def test_a_saved_notebook_keeps_the_static_panel(tmp_path):
    notebook = execute("show.display(views.STANDARD)", tmp_path=tmp_path)
    static, live = notebook.cells[-1].outputs
    assert static.data["text/plain"] == show.text(STANDARD)
    assert WIDGET_VIEW in live.data
    assert live.data["text/plain"] == ""
    for state in (True, False):
        if not state:
            notebook.metadata.pop("widgets", None)
        page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
        assert page.count("labels comes out of") == 1
        assert "move labels in the loop" in page


def test_a_widget_saved_with_its_notebook_weighs_little_more_for_three_hundred_rows(tmp_path):
    """nbclient saves the state of widgets, the script too, for each panel; JupyterLab does not."""
    rows = """[views.Row(f"model.layer{i}.weight", "parameter", "cuda:0", "In [7]", True, (64, 64), "float32", i)
        for i in range(300)]"""
    many = f"import dataclasses; show.display(dataclasses.replace(views.STANDARD, placements=tuple({rows})))"
    notebook = execute(many, tmp_path=tmp_path)
    assert "DevicePanel" in str(notebook.metadata.widgets)
    assert len(json.dumps(notebook.metadata.widgets)) < 40_000


@pytest.mark.parametrize(
    "breakage",
    [
        "sys.modules['anywidget'] = None",
        "import types; sys.modules['anywidget'] = types.ModuleType('anywidget')",
        "import os; os.environ['KAGGLE_KERNEL_RUN_TYPE'] = 'Interactive'",
        "import anywidget; anywidget.AnyWidget.__init__ = lambda *a, **k: 1 / 0",
    ],
)
def test_without_a_working_anywidget_the_static_panel_remains(breakage, tmp_path):
    notebook = execute(breakage, "show.display(views.STANDARD)", tmp_path=tmp_path)
    (static,) = notebook.cells[-1].outputs
    assert "labels is on cpu" in static.data["text/html"]


def test_old_panels_close_so_that_a_long_session_does_not_grow(tmp_path):
    notebook = execute(
        "from ipydevice.show import as_widget; as_widget.LIVE_AT_MOST = 2",
        "for _ in range(5): show.display(views.STANDARD)",
        "from ipywidgets.widgets import widget",
        "sum('DevicePanel' in type(w).__name__ for w in widget._instances.values())",
        tmp_path=tmp_path,
    )
    assert notebook.cells[-1].outputs[0].data["text/plain"] == "2"


def test_a_cell_that_ends_with_a_diagnosis_shows_the_panel(tmp_path):
    notebook = execute("views.STANDARD", "views.WORKSPACE", tmp_path=tmp_path)
    for cell, view in zip(notebook.cells[1:], (STANDARD, WORKSPACE), strict=True):
        assert cell.outputs[0].data["text/plain"] == show.text(view)

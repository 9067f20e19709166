"""Whole panels against stored ones. IPYDEVICE_REGEN=1 rewrites them; read the difference before committing it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from views import VIEWS

from ipydevice import show

GOLDEN = Path(__file__).with_name("golden")
LOWERED = {
    "txt": lambda view: show.text(view) + "\n",
    "narrow.txt": lambda view: show.text(view, width=50) + "\n",
    "ansi": lambda view: show.text(view, color=True) + "\n",
    "html": lambda view: show.html(view).replace("><", ">\n<") + "\n",
}


@pytest.mark.parametrize("form", LOWERED)
@pytest.mark.parametrize("name", VIEWS)
def test_panel_is_as_stored(name, form):
    stored = GOLDEN / f"{name}.{form}"
    made = LOWERED[form](VIEWS[name])
    if os.environ.get("IPYDEVICE_REGEN"):
        stored.write_text(made, encoding="utf-8")
    assert made == stored.read_text(encoding="utf-8")

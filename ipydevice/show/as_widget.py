"""Tree -> the live panel, one anywidget in plain ESM.

Only this module imports anywidget, and only when the first panel is displayed.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections import deque
from functools import cache
from typing import Any

from ipydevice import language
from ipydevice.diagnosis import Diagnosis, Fix, Inventory
from ipydevice.report import CheckReport
from ipydevice.show import as_html, as_markdown, insertion, quantities
from ipydevice.show.colours import colour
from ipydevice.show.escape import visible
from ipydevice.show.panel import option
from ipydevice.show.tree import Entry, Panel, Table

# anywidget loads one module from a blob, where relative imports lead nowhere: so the files are joined.
_SCRIPTS = ("notebook.js", "table.js", "panel.js")
_COMMENT = ("//", "/**", "*")  # how a line of a comment begins in them

# ipywidgets keeps every widget for ever. Beyond this many the oldest closes, and its static twin returns.
LIVE_AT_MOST = 50
_live: deque[Any] = deque()


def bundle(view: Diagnosis | Inventory | CheckReport, panel: Panel, uid: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Mime bundle and metadata of a new widget. Raises ImportError where anywidget is missing.

    The plain text is empty, since the static output has said it all; without any, nbconvert warns.
    """
    widget = panel_class()(data=data(view, panel, uid), rows=rows(panel))
    widget.on_msg(_answer)
    _live.append(widget)
    while len(_live) > LIVE_AT_MOST:
        _live.popleft().close()
    made = widget._repr_mimebundle_()
    mime, metadata = made if isinstance(made, tuple) else (made, {})
    return {**mime, "text/plain": ""}, dict(metadata)


@cache
def panel_class() -> type[Any]:
    import anywidget
    import traitlets

    class DevicePanel(anywidget.AnyWidget):  # type: ignore[misc, unused-ignore]
        _esm = script()
        _css = as_html.style() + as_html.asset("widget.css")
        # Buffers: a list of 10,000 rows as a trait takes twice as long to reach the page.
        data = traitlets.Bytes(b"").tag(sync=True)
        rows = traitlets.Bytes(b"").tag(sync=True)

    return DevicePanel


def script() -> str:
    """The joined files without comments and indentation: nbclient saves it with every widget."""
    lines = (line.strip() for name in _SCRIPTS for line in as_html.asset(name).splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(_COMMENT))


def data(view: Diagnosis | Inventory | CheckReport, panel: Panel, uid: str) -> bytes:
    """All that the page needs but the rows of the tables, as deflated JSON."""
    tables = [block for block in panel.blocks if isinstance(block, Table)]
    plain: dict[str, Any] = {
        "uid": uid,
        "translations": _translations(),
        "html": as_html.body(panel, rows=False),
        "tables": [{"left": table.left, "atLeast": table.at_least} for table in tables],
        "colours": {
            visible(device): colour(device) for table in tables for device in {e.device for e in table.entries}
        },
        "report": "",
        "failed": {},
        "fixes": [],
    }
    if isinstance(view, Diagnosis):
        plain["report"] = as_markdown.report(view, panel)
        plain["failed"] = {
            "cell": view.failed.cell,
            "cell_id": view.failed.cell_id,
            "source": view.failed_cell_source,
        }
        plain["fixes"] = [_fix(fix, number) for number, fix in enumerate(view.fixes, 1)]
    elif isinstance(view, Inventory):
        plain["fixes"] = [_fix(fix, number) for number, fix in enumerate(view.fixes, 1)]
    elif isinstance(view, CheckReport):
        # Several small tables, which need neither sorting nor filters: they stay as they are.
        plain |= {"html": as_html.body(panel), "tables": []}
        plain["failed"] = {"cell": view.cell, "cell_id": view.cell_id, "source": view.cell_source}
        plain["fixes"] = [_fix(fix, number) for number, fix in enumerate(view.fixes, 1)]
    return _deflated(plain)


def _translations() -> dict[str, str]:
    """Of the sentences that the page says itself; none in English."""
    known = language.translations()
    return {sentence: known[sentence] for sentence in language.said_by_script(script() if known else "")}


def rows(panel: Panel) -> bytes:
    """The rows of all tables, as deflated JSON: the page reads them when a table is first looked at."""
    tables = [list(map(_row, block.entries)) for block in panel.blocks if isinstance(block, Table)]
    return _deflated(tables)


def _deflated(plain: Any) -> bytes:
    """JSON in UTF-8, a tenth of its size: it stays in the kernel, and in a file that is saved with its widgets."""
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8", "replace"), 4)  # higher levels take three times as long for little


def _answer(widget: Any, content: dict[str, Any], _buffers: Any) -> None:
    """What the page asks of the kernel: how much the last error holds, and, after a click, to forget it."""
    from ipydevice import forget
    from ipydevice.listing.memory import WORTH_A_WORD

    shell = sys.modules["IPython"].get_ipython()
    if content.get("ask") == "held":
        held = {device: size for device, size in forget.held_by_error(shell).items() if size >= WORTH_A_WORD}
        widget.send({"held": quantities.sizes(held)})
    elif content.get("ask") == "forget":
        widget.send({"freed": quantities.sizes(forget.forget_error(shell))})


def _row(entry: Entry) -> list[Any]:
    """The order is that of `deviceTable` in table.js."""
    texts = (entry.name, entry.kind, entry.device, entry.shape, entry.dtype)
    return [
        *map(visible, texts),
        entry.bytes,
        visible(entry.remark),
        int(entry.odd),
        entry.level,
        int(entry.header),
        int(entry.open),
        int(entry.at_least),
    ]


def _fix(fix: Fix, number: int) -> dict[str, Any]:
    return {
        "number": number,
        "title": fix.title,
        "kind": fix.kind,
        "main": option(number, fix).main,
        "edits": [
            {"cell": e.cell, "cell_id": e.cell_id, "file": e.file, "before": e.before, "after": e.after}
            for e in fix.edits
        ],
        "setup": fix.setup,
        "rerun": [{"cell": r.cell, "cell_id": r.cell_id, "source": r.source} for r in fix.rerun],
        "inserts": insertion.cells_of(fix, number),
    }

"""Which front end is at hand and what it can show. Every quirk of one lives here, with its source."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ipydevice.diagnosis import MIME_TYPE, Diagnosis, Inventory
from ipydevice.launchers import is_engine
from ipydevice.report import CheckReport
from ipydevice.show import as_html, as_text, wishes
from ipydevice.show.tree import Panel

if TYPE_CHECKING:
    from ipydevice.settings import DeviceTools

_log = logging.getLogger("ipydevice")

# Rows repeated in the JSON beside the panel: nbformat writes one value a line, 300 rows would take 120 kB.
JSON_ROWS = 12
_TYPES = {Diagnosis: "diagnosis", Inventory: "inventory", CheckReport: "check"}
_ASCII = str.maketrans({"✗": "x", "▸": ">", "─": "-", "│": "|", "·": "*", "…": "~", "█": "#", "░": ".", "⏎": " "})


def publish(view: Diagnosis | Inventory | CheckReport, panel: Panel) -> None:
    """In a kernel two outputs, static then widget; in a terminal or plain Python the text."""
    shell = _shell()
    if shell is not None:
        panel = wishes.granted(panel, wanted())
    if shell is None or getattr(shell, "kernel", None) is None:
        width = shutil.get_terminal_size((100, 24)).columns
        print(printable(as_text.render(panel, width=width, color=_colored(shell)), sys.stdout))
        return
    uid = os.urandom(6).hex()
    shell.display_pub.publish(bundle(view, panel, uid))
    if takes_widgets():
        live = _live(view, panel, uid)
        if live is not None:
            shell.display_pub.publish(*live)


def bundle(view: Diagnosis | Inventory | CheckReport, panel: Panel, uid: str) -> dict[str, Any]:
    """The static output. It stays in the saved file; the widget finds and hides it by its class.

    Two outputs, since JupyterLab shows "model not found" for a widget whose kernel is gone
    and does not fall back on the HTML of the same bundle (seen in 4.6.6).
    """
    return {
        "text/plain": as_text.render(panel, width=100, color=False),
        "text/html": f'<div class="ipydevice-static ipydevice-{uid}">{as_html.render(panel)}</div>',
        MIME_TYPE: _machine(view),
    }


def _machine(view: Diagnosis | Inventory | CheckReport) -> dict[str, Any]:
    """As docs/json.md promises it."""
    if isinstance(view, Diagnosis):
        left = max(0, len(view.placements) - JSON_ROWS)
        view = replace(view, placements=view.placements[:JSON_ROWS], placements_left=view.placements_left + left)
    elif isinstance(view, Inventory):
        left = max(0, len(view.rows) - JSON_ROWS)
        view = replace(view, rows=view.rows[:JSON_ROWS], left=view.left + left)
    text = json.dumps({"type": _TYPES[type(view)], **view.to_dict()}, ensure_ascii=False)
    # A lone surrogate in a name cannot be sent: the kernel's JSON is UTF-8.
    plain: dict[str, Any] = json.loads(text.encode("utf-8", "replace"))
    return plain


def takes_widgets() -> bool:
    """Whether the page, and all between it and us, can take a widget.

    Kaggle's page is a fixed build that can't load anywidget (Kaggle/docker-python issue 1190). From an ipyparallel
    engine a widget's messages stop all output of its client in a terminal (ipyparallel 9.2, client.py: it reads
    ``ip.kernel``).
    """
    return "KAGGLE_KERNEL_RUN_TYPE" not in os.environ and not is_engine(_shell())


def _live(
    view: Diagnosis | Inventory | CheckReport, panel: Panel, uid: str
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Mime bundle and metadata of the live panel; None where anywidget is missing, too old or broken.

    Whatever a widget library may raise, the static panel is on the page already.
    """
    try:
        from ipydevice.show import as_widget

        return as_widget.bundle(view, panel, uid)
    except Exception:  # noqa: BLE001
        _log.debug("no live panel", exc_info=True)
        return None


def wanted() -> DeviceTools:
    """What the person at this shell wishes for."""
    from ipydevice import settings  # traitlets come with IPython, and plain Python needs neither

    return settings.of(_shell())


def has_shell() -> bool:
    """Whether somebody could type a magic."""
    return _shell() is not None


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _colored(shell: Any) -> bool:
    """Colour where IPython's own traceback has it, and what is read is a terminal (https://no-color.org)."""
    wish = "auto" if shell is None else wanted().colours
    if wish != "auto":
        return wish == "always"
    if shell is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return str(getattr(shell, "colors", "nocolor")).lower() != "nocolor" and sys.stdout.isatty()


def printable(text: str, stream: Any) -> str:
    """`text` in the characters that `stream` can write: a Windows code page has no "✗"."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text

"""Diagnosis | Inventory | CheckReport -> one tree -> text, static HTML, widget.

`text` and `html` are pure; `display` writes to the front end at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipydevice.diagnosis import Diagnosis, Inventory
from ipydevice.language import say
from ipydevice.report import CheckReport

if TYPE_CHECKING:
    from ipydevice.show.tree import Panel

__all__ = ["display", "display_after_error", "html", "markdown", "printed", "string", "text", "tree_of"]

# The views are imported when something is shown: `%load_ext ipydevice` passes here, and costs every start.


def tree_of(view: Diagnosis | Inventory | CheckReport) -> Panel:
    """The tree that all views of `view` are lowered from. Raises TypeError for anything else."""
    from ipydevice.show import check_report, panel, workspace

    if isinstance(view, Diagnosis):
        return panel.of_diagnosis(view)
    if isinstance(view, Inventory):
        return workspace.of_inventory(view)
    if isinstance(view, CheckReport):
        return check_report.of_report(view)
    raise TypeError(f"expected a Diagnosis, an Inventory or a CheckReport to show, got {type(view).__name__}")


def text(view: Diagnosis | Inventory | CheckReport, *, width: int = 100, color: bool = False) -> str:
    """Lines of at most `width` terminal columns; a standard diagnosis takes at most 12 lines."""
    from ipydevice.show import as_text

    return as_text.render(tree_of(view), width=width, color=color)


def printed(view: Diagnosis | Inventory | CheckReport, *, width: int = 100, color: bool = False) -> str:
    """As `text`, where no shell takes `%devicefix`: the code of each fix stands below it, as long as it takes."""
    from ipydevice.show import as_text

    return as_text.render(tree_of(view).without_magics(), width=width, color=color)


def string(view: Diagnosis | Inventory | CheckReport) -> str:
    """What ``str(view)`` is: with magics where there is a shell, else with the code of the fixes."""
    from ipydevice.show import front_end

    return text(view) if front_end.has_shell() else printed(view)


def html(view: Diagnosis | Inventory | CheckReport) -> str:
    """Static HTML with its own style sheet, no script, for light and dark themes."""
    from ipydevice.show import as_html

    return as_html.render(tree_of(view))


def markdown(view: Diagnosis | Inventory | CheckReport) -> str:
    """A report for a forum or an issue tracker: names and devices, versions, no data, no folders of this machine."""
    from ipydevice.show import as_markdown

    return as_markdown.report(view, tree_of(view))


def display(view: Diagnosis | Inventory | CheckReport) -> None:
    """Show `view` where the user is: static HTML and the widget in a notebook, text elsewhere."""
    from ipydevice.show import front_end

    front_end.publish(view, tree_of(view))


def display_after_error(diagnosis: Diagnosis, before: Diagnosis | None) -> None:
    """The panel under a traceback: one line that opens where it says what the panel `before` it said.

    `%config DeviceTools` may switch it off or have it short.
    """
    from ipydevice.show import front_end, wishes

    wanted = front_end.wanted()
    panel = tree_of(diagnosis)
    if before is not None and wishes.is_the_same(before, diagnosis):
        panel = wishes.folded(panel, diagnosis, say("as before"))
    elif wanted.verbosity == "short":
        panel = wishes.folded(panel, diagnosis)
    if wanted.auto_display:
        front_end.publish(diagnosis, panel)

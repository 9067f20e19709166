"""Diagnosis | Inventory -> one tree -> text, static HTML, widget.

`text` and `html` are pure; `display` writes to the front end at hand.
"""

from __future__ import annotations

from ipydevice.diagnosis import Diagnosis, Inventory
from ipydevice.show import as_html, as_text
from ipydevice.show.panel import of_diagnosis
from ipydevice.show.tree import Panel
from ipydevice.show.workspace import of_inventory

__all__ = ["display", "html", "text", "tree_of"]


def tree_of(view: Diagnosis | Inventory) -> Panel:
    """The tree that all views of `view` are lowered from. Raises TypeError for anything else."""
    if isinstance(view, Diagnosis):
        return of_diagnosis(view)
    if isinstance(view, Inventory):
        return of_inventory(view)
    raise TypeError(f"expected a Diagnosis or an Inventory to show, got {type(view).__name__}")


def text(view: Diagnosis | Inventory, *, width: int = 100, color: bool = False) -> str:
    """Lines of at most `width` terminal columns; a standard diagnosis takes at most 12 lines."""
    return as_text.render(tree_of(view), width=width, color=color)


def html(view: Diagnosis | Inventory) -> str:
    """Static HTML with its own style sheet, no script, for light and dark themes."""
    return as_html.render(tree_of(view))


def display(view: Diagnosis | Inventory) -> None:
    """Show `view` where the user is: static HTML and the widget in a notebook, text elsewhere."""
    from ipydevice.show.front_end import publish

    publish(view, tree_of(view))

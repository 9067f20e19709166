"""A namespace, or the locals of a frame, as rows: what is where, how big, and what is odd about it.

The public door is `ipydevice.inventory`, a function; a module of that name would hide it.
"""

from __future__ import annotations

from ipydevice.listing.memory import Kept
from ipydevice.listing.namespace import KINDS, SORTS, examine, list_namespace, refine, select, value_at
from ipydevice.listing.rows import frame_rows

__all__ = ["KINDS", "SORTS", "Kept", "examine", "frame_rows", "list_namespace", "refine", "select", "value_at"]

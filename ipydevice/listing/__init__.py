"""A namespace, or the locals of a frame, as rows: what is where, how big, and what is odd about it.

The public door is `ipydevice.inventory`, a function; a module of that name would hide it.
"""

from __future__ import annotations

from ipydevice.listing.namespace import list_namespace, select
from ipydevice.listing.rows import frame_rows

__all__ = ["frame_rows", "list_namespace", "select"]

"""Where one object lives: a tensor, a module, an optimizer, a container, an object that holds tensors.

Everything is read, nothing is called: no ``repr``, ``==`` or ``hash`` of the user's, no
property, no ``__getattr__``, no data of a tensor.
"""

from __future__ import annotations

from ipydevice.placement.inside import Inside, devices_of, inside
from ipydevice.placement.kinds import (
    class_name,
    is_array,
    is_module,
    is_optimizer,
    is_parameter,
    is_tensor,
    module_name,
    torch_class,
)
from ipydevice.placement.members import MOST_ITEMS, Member, members
from ipydevice.placement.reader import FactReader, Facts
from ipydevice.placement.tensors import (
    UNKNOWN,
    bytes_of,
    call,
    device_of,
    dtype_of,
    grad_of,
    is_plain,
    memory_of_storage,
    quiet,
    read,
    same,
    shape_of,
    storage_of,
)
from ipydevice.placement.walk import (
    DEPTH,
    FEW_LOOKS,
    MOST_MEMBERS,
    MOST_PLAIN,
    NO_TENSORS,
    Bounds,
    Found,
    is_leaf,
    kind_of,
    walk,
    walk_within,
)

__all__ = [
    "DEPTH",
    "FEW_LOOKS",
    "MOST_ITEMS",
    "MOST_MEMBERS",
    "MOST_PLAIN",
    "NO_TENSORS",
    "UNKNOWN",
    "Bounds",
    "FactReader",
    "Facts",
    "Found",
    "Inside",
    "Member",
    "bytes_of",
    "call",
    "class_name",
    "device_of",
    "devices_of",
    "dtype_of",
    "grad_of",
    "inside",
    "is_array",
    "is_leaf",
    "is_module",
    "is_optimizer",
    "is_parameter",
    "is_plain",
    "is_tensor",
    "kind_of",
    "members",
    "memory_of_storage",
    "module_name",
    "quiet",
    "read",
    "same",
    "shape_of",
    "storage_of",
    "torch_class",
    "walk",
    "walk_within",
]

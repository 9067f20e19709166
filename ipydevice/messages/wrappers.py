"""From the method name in the common device check to the op and the arguments that it checks.

torchgen names the checking functions of plain and of structured kernels by two schemes
(``wrapper_CUDA_Tensor_bucketize``, ``wrapper_CUDA_scatter__src``), and the overload stands on
opposite sides, so the names are looked up in a table generated from torchgen of the releases
1.13 to 2.14 rather than taken apart.  The table leaves out the dispatch key and all functions
that check one tensor only, which cannot fail.
"""

from __future__ import annotations

import pkgutil
import re
from functools import cache

# wrapper_CUDA_addmm, wrapper_NPU__index_select; up to 1.13 there is no dispatch key: wrapper_addmm
_KEY = re.compile(r"wrapper_(?:(?=[A-Z])(?!Tensor_|Scalar_|Dimname_|Generator_)[A-Za-z0-9]+_)?(?=\w)")


@cache
def _table() -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    raw = pkgutil.get_data("ipydevice.messages", "wrappers.tsv")
    assert raw is not None, "wrappers.tsv belongs to the package"
    table: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for line in raw.decode().splitlines()[1:]:
        method, op, arguments = line.split("\t")
        table.setdefault(method, []).append((op, tuple(arguments.split(","))))
    return table


def checked(method: str, argument: str | None) -> tuple[str, tuple[str, ...]]:
    """The op (without overload) and its arguments in the order checked; () where the method is not in the table.

    The first argument that is given (not None) is the one with which all others are compared.
    """
    method = method.strip("():")
    name = _KEY.sub("", method, count=1) if method.startswith("wrapper_") else re.split(r"::|\.", method)[-1]
    found: list[tuple[str, tuple[str, ...]]] = []
    for spelling in (name, f"_{name}", f"__{name}", f"{name}_out"):
        found += _table().get(spelling, [])
    for op, arguments in found:
        if argument is None or argument in arguments:
            return op, arguments
    if found:
        return found[0][0], ()
    return re.sub(r"^_*(?:th(?:nn|cunn)?_)?|_out$", "", name), ()

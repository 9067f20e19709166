"""What a cell did to an object that outlives it, and how to take it back."""

from __future__ import annotations

import ast

import pytest

from ipydevice.fixes import undo
from ipydevice.fixes.names import Effects


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("log.append(x)", "log.pop()"),
        ("self.log[0].append(x)", "self.log[0].pop()"),
        ("for x in xs:\n    log.append(x)", None),
        ("[log.append(x) for x in xs]", None),
        ("m.register_forward_hook(f)", "m._forward_hooks.popitem()"),
        ("w.register_hook(f)", "w._backward_hooks.popitem()"),
        ("handle = w.register_hook(f)", "handle.remove()"),
        ("opt.add_param_group(g)", "opt.param_groups.pop()"),
        ("opt.step()", None),
        ("xs.extend(ys)", None),
    ],
)
def test_code_that_takes_a_call_back(cell: str, expected: str | None) -> None:
    tree = ast.parse(cell)
    ((_, _, call),) = Effects(tree).unsafe
    assert undo.code(tree, call) == expected

"""Datasets and collate functions, which run in worker processes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ipydevice.diagnose.infer import keyword
from ipydevice.lint.names import Names
from ipydevice.lint.rule import Problem, rule

_BASES = re.compile(r"(^|\.)(\w*Dataset)$")
_ACCELERATED = re.compile(r"^['\"](cuda|mps|xpu|npu|hpu)(:\d+)?['\"]$")


@rule(
    "IPD008",
    "accelerator-in-a-dataset",
    "Items are made in worker processes, which cannot use the parent's CUDA; give host tensors, move the batch.",
)
def in_dataset(names: Names) -> Iterator[Problem]:
    functions = [
        method
        for cls in names.classes
        if any(_BASES.search(ast.unparse(base)) for base in cls.bases)
        for method in names.methods(cls)
        if method.name == "__getitem__"
    ]
    collates = {ast.unparse(given) for call in names.calls if (given := keyword(call, "collate_fn")) is not None}
    functions += [node for node in names.nodes if isinstance(node, ast.FunctionDef) and (node.name in collates)]
    for function in functions:
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and (said := _moves_to_card(names, node)):
                yield Problem(node, f"`{said}` in {function.name}(): give host tensors and move the batch in the loop")


def _moves_to_card(names: Names, node: ast.Call) -> str:
    attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if names.full(node.func) and not names.full(node.func).startswith("torch."):
        return ""
    given = keyword(node, "device") or (node.args[0] if attribute == "to" and node.args else None)
    if attribute == "cuda" or (given is not None and _ACCELERATED.match(ast.unparse(given))):
        return names.source.segment(node)
    return ""

"""Optimizers, and the models whose parameters they hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ipydevice.lint.names import Names
from ipydevice.lint.rule import Problem, rule
from ipydevice.lint.uses import MOVES


@rule(
    "IPD003",
    "optimizer-before-move",
    "An optimizer built before the model moves keeps what it has made of the parameters (state, flattened copies) "
    "where they were; PyTorch's documentation asks for the move first.",
)
def optimizer_before_move(names: Names) -> Iterator[Problem]:
    for nodes in names.nodes_of.values():
        own = [node for node in nodes if isinstance(node, (ast.Assign, ast.Expr))]
        built: dict[str, ast.Call] = {}
        for statement in own:
            call = statement.value
            if isinstance(call, ast.Call) and names.called(call).startswith("torch.optim."):
                for model in _models(call):
                    built.setdefault(model, call)
                continue
            moved = _moved(statement)
            if moved in built and not _rebuilt(own, statement, moved):
                yield Problem(
                    built.pop(moved),
                    f"optimizer built before `{names.source.segment(statement)}`; move {moved} first",
                )
            for name in _assigned(statement):
                built.pop(name, None)


def _models(call: ast.Call) -> Iterator[str]:
    """``model`` in ``Adam(model.parameters())``; lists of groups too."""
    for node in ast.walk(call):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parameters":
            yield ast.unparse(node.func.value)


def _moved(statement: ast.Assign | ast.Expr) -> str:
    """``model`` in ``model.to(device)`` and ``model = model.cuda()``; "" for another statement."""
    call = statement.value
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in MOVES):
        return ""
    if (
        call.func.attr == "to"
        and call.args
        and re.search(r"float|half|dtype|double|channels", ast.unparse(call.args[0]))
    ):
        return ""
    if call.func.attr == "to" and not call.args and not any(k.arg == "device" for k in call.keywords):
        return ""
    if call.func.attr == "cpu":
        return ""  # moved home to be saved
    name = ast.unparse(call.func.value)
    if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) != name:
        return ""
    return name


def _assigned(statement: ast.Assign | ast.Expr) -> list[str]:
    if not isinstance(statement, ast.Assign) or _moved(statement):
        return []
    return [ast.unparse(target) for target in statement.targets]


def _rebuilt(own: list[ast.Assign | ast.Expr], after: ast.stmt, model: str) -> bool:
    """Whether another optimizer of this model is built below the move."""
    return any(
        statement.lineno > after.lineno
        and isinstance(statement.value, ast.Call)
        and model in list(_models(statement.value))
        for statement in own
    )

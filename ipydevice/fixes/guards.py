"""A cell that would have caught the mistake early, and the habit that prevents its kind."""

from __future__ import annotations

import ast

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, Scope, value
from ipydevice.diagnosis import Fix
from ipydevice.fixes import classes
from ipydevice.fixes.context import Context
from ipydevice.fixes.names import own_nodes
from ipydevice.language import Sentence, say

_HABITS: dict[str, Sentence] = {
    "input_not_moved": "move each batch in one place, at the top of the loop",
    "label_not_moved": "move each batch in one place, at the top of the loop",
    "nested_batch_partly_moved": "move a batch by one function that goes as deep as the batch",
    "fresh_tensor_no_device": "make new tensors with device=x.device or x.new_zeros(...)",
    "plain_tensor_attribute": "register tensors of a module as buffers",
    "derived_tensor_in_init": "compute from parameters where the result is used",
    "module_in_plain_container": "keep modules in nn.ModuleList and nn.ModuleDict",
    "model_not_moved": "move a model in the line that makes it",
    "loss_weight": "move a loss with weights as you move the model",
    "metric_state": "move a metric as you move the model",
    "teacher": "move every model in the line that makes it",
    "ema_shadow": "make averaged copies after the move",
    "optimizer_state": "build and load the optimizer after the model has moved",
    "rnn_state": "make hidden states with the device of the input",
    "stale_cache": "ask a cache for the device as well as for the key",
    "to_numpy": "give numpy x.detach().cpu()",
    "must_be_cpu": "keep lengths on the host",
    "index_device": "make indices with the device of what they select from",
    "generator_device": "make a generator with the device that it draws for",
    "hardcoded_device": "name the device once, and say device everywhere else",
    "to_result_discarded": "assign what .to() returns; only modules move in place",
    "checkpoint_location": 'load with map_location="cpu", then move',
    "cuda_in_dataset": "let data sets give host tensors, and move them in the loop",
    "module_added_after_move": "change a model first, move it last",
    "model_split_multi_gpu": "move at the seam, with x.to(layer.weight.device)",
}


def guard(ctx: Context) -> Fix | None:
    """Prints the devices of what the failing line of the cell and the culprit name, and asserts that they are one."""
    failed = ctx.work.failed
    parts = _parts(ctx)
    if failed is None or ctx.target is None or ctx.finding.host_required or len(parts) < 2:
        return None
    listed = ", ".join(f"{_quoted(name)}: {code}" for name, code in parts)
    code = (
        f"where = {{{listed}}}\n"
        "for name, device in where.items():\n"
        '    print(f"{name:20} {device}")\n'
        'assert len(set(where.values())) == 1, f"on different devices: {where}"'
    )
    habit = _HABITS.get(ctx.finding.cause)
    made_there = ctx.work.effects(failed).binds & {name.split(".")[0].split("[")[0] for name, _ in parts}
    note = say(
        "it belongs above the line that fails in In [{cell}]" if made_there else "it belongs above In [{cell}]",
        cell=failed.number,
    )
    if habit:
        note = say("{note}; the habit that helps: {habit}", note=note, habit=say(habit))
    return Fix(
        title=say("check the devices first, in a cell of its own"), kind="guard", setup=code, note=note, checked=True
    )


def _quoted(text: str) -> str:
    """A string literal, in double quotes unless the text has some."""
    return repr(text) if '"' in text or "'" in text else f'"{text}"'


def _parts(ctx: Context) -> list[tuple[str, str]]:
    """(what it is called, code of its device), of the workspace's tensors and modules; the culprit last."""
    found: dict[str, str] = {}
    for node in own_nodes(_line(ctx)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            code = _device_of(ctx, node.id)
            if code is not None:
                found[node.id] = code
    path = ctx.stray.path if ctx.stray is not None else None
    code = _device_of(ctx, path) if path is not None else None
    if path is not None and code is not None:
        found.pop(path, None)
        kept = list(found.items())[:5]
        # Of the object that holds the culprit, the parameters tell where it is.
        return [*kept, (path, code)]
    return list(found.items())[:6]


def _line(ctx: Context) -> list[ast.AST]:
    """The statement of the failed cell that ran when it failed, whatever function it was in."""
    failed, start = ctx.work.failed, ctx.finding.start
    if failed is None:
        return []
    source = classes.cell_source(ctx, failed)
    line = start.frame.f_lineno if start is not None and start.frame is not None else 0
    within = [s for s in source.nodes if isinstance(s, ast.stmt) and s.lineno <= line <= (s.end_lineno or 0)]
    inner = [s for s in within if not hasattr(s, "body")]
    return list(inner[-1:])


def _device_of(ctx: Context, path: str) -> str | None:
    """Code for the device of a tensor or module of the workspace."""
    try:
        node = ast.parse(path, mode="eval").body
    except SyntaxError:
        return None
    live = value(node, Scope.of_namespace(ctx.finding.namespace))
    if live is MISSING:
        return None
    if placement.is_tensor(live):
        return f"{path}.device"
    if placement.is_module(live) and any(f.via == "parameter" for f in placement.walk(live)):
        return f"next({path}.parameters()).device"
    return None

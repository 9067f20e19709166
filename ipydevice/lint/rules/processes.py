"""Several cards, several processes, and the environment that they see."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ipydevice.diagnose.infer import keyword
from ipydevice.lint.names import Names
from ipydevice.lint.rule import Problem, rule

_DDP = "torch.nn.parallel.DistributedDataParallel"
_USES = re.compile(
    r"""\.cuda\(|\.to\(\s*['"]cuda|device\s*=\s*['"]cuda|torch\.cuda\.(?!is_available|device_count)\w+\("""
)


@rule(
    "IPD010",
    "data-parallel",
    "nn.DataParallel copies the model on every step and has traps of its own; PyTorch advises DistributedDataParallel.",
    opt_in=True,
)
def data_parallel(names: Names) -> Iterator[Problem]:
    for call in names.calls_of("torch.nn.DataParallel", "torch.nn.parallel.DataParallel"):
        yield Problem(call, "nn.DataParallel: DistributedDataParallel is faster and has fewer traps")


@rule(
    "IPD011",
    "ddp-without-device",
    "Each process works on its own card; without torch.cuda.set_device or device_ids all of them meet on the first.",
)
def ddp_without_device(names: Names) -> Iterator[Problem]:
    text = names.source.text
    if "set_device" in text or "device_id" in text or "CUDA_VISIBLE_DEVICES" in text or "nccl" not in text:
        return
    for call in names.calls_of(_DDP, "torch.nn.parallel.distributed.DistributedDataParallel"):
        if keyword(call, "device_ids") is None and len(call.args) < 2:
            yield Problem(
                call, "DistributedDataParallel, and no process chooses its card: torch.cuda.set_device(local_rank)"
            )


@rule(
    "IPD012",
    "visible-devices-too-late",
    "CUDA reads CUDA_VISIBLE_DEVICES once, when it starts; setting it afterwards changes nothing.",
)
def visible_too_late(names: Names) -> Iterator[Problem]:
    used: ast.stmt | None = None
    for statement in names.tree.body:
        if used is not None and _sets_visible(statement):
            yield Problem(
                statement, f"CUDA is in use since `{names.source.line_text(used.lineno)}`: this setting comes too late"
            )
        if used is None and not isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.If)):
            text = names.source.segment(statement)
            used = statement if _USES.search(text) and "is_available" not in text else None


def _sets_visible(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Subscript(value=where, slice=ast.Constant(value="CUDA_VISIBLE_DEVICES"))]):
            return ast.unparse(where).endswith("environ")
    return False

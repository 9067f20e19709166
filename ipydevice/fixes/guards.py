"""A cell that would have caught the mistake early."""

from __future__ import annotations

import ast

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING
from ipydevice.diagnose.finding import Site
from ipydevice.diagnosis import Fix
from ipydevice.fixes.context import Context
from ipydevice.fixes.names import own_nodes


def guard(ctx: Context) -> Fix | None:
    """Prints the devices of the names that the failing line of the cell uses, and asserts that they are one."""
    parts = list(_parts(ctx))
    if len(parts) < 2:
        return None
    listed = ", ".join(f'"{name}": {code}' for name, code in parts)
    code = (
        f"where = {{{listed}}}\n"
        "for name, device in where.items():\n"
        '    print(f"{name:20} {device}")\n'
        'assert len(set(where.values())) == 1, f"on different devices: {where}"'
    )
    return Fix(title="check the devices first, in a cell of its own", kind="guard", setup=code, checked=True)


def _parts(ctx: Context) -> list[tuple[str, str]]:
    """(name, code of its device) of the workspace's tensors and modules that the failed cell's line names."""
    failed = ctx.work.failed
    source = ctx.finding.failed.source
    if failed is None or source.cell is not failed or ctx.finding.host_required:
        return []
    found: dict[str, str] = {}
    for node in own_nodes([ctx.failed_statement] if ctx.failed_statement is not None else []):
        if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)) or node.id in found:
            continue
        if any(True for _ in ctx.work.functions(source, node)):
            continue
        live = ctx.work.value(Site(source, node, ctx.finding.failed.frame), node.id)
        if live is MISSING:
            continue
        if placement.is_tensor(live):
            found[node.id] = f"{node.id}.device"
        elif placement.is_module(live) and any(f.via == "parameter" for f in placement.walk(live)):
            found[node.id] = f"next({node.id}.parameters()).device"
    return list(found.items())[:6]

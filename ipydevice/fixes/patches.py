"""Changes of the user's own .py files: a unified diff, and a reload that makes it count."""

from __future__ import annotations

import os
import sys
import types

from ipydevice.diagnose.frames import is_library
from ipydevice.diagnosis import Edit, Fix
from ipydevice.fixes.context import Context, diff
from ipydevice.language import say


def patch(ctx: Context, title: str, note: str, edits: list[Edit], live: str | None) -> list[Fix]:
    """The edits as a patch that ``%devicefix N --apply`` writes; nothing for files that are not the user's."""
    files = [edit for edit in edits if edit.file]
    if any(edit.file is None or is_library(edit.file) for edit in files):
        return []
    reload = [code for edit in files if edit.file and (code := reload_code(ctx, edit.file)) is not None]
    builders = _builders(ctx, [edit.file for edit in files if edit.file])
    plan = ctx.rerunner.from_cells(builders)
    notes = [note, *plan.notes]
    runs_it = _is_run_by_the_cell(ctx, files)
    if not ctx.work.history.cells:
        notes.append(say("run the program again"))
    elif len(reload) < len(files) and not runs_it:
        notes.append(say("restart the kernel afterwards: the file is not a module that can be loaded again"))
    fix = Fix(
        title=title,
        kind="patch",
        edits=tuple(edits),
        setup="\n".join(reload) or None,
        rerun=plan.rerun,
        note=say("; ").join(n for n in notes if n),
        checked=len(reload) == len(files) or runs_it,
        diff="".join(diff(edit) for edit in files),
    )
    if live is None:
        return [fix]
    only = ctx.rerunner.only_failed()
    repair = Fix(
        title=say("{title}, only for this session", title=title),
        kind="repair",
        setup=live,
        rerun=only.rerun,
        note=say("the file stays as it is: after a restart the error is back"),
        checked=True,
    )
    return [repair, fix] if plan.loses_work else [fix, repair]


def _is_run_by_the_cell(ctx: Context, files: list[Edit]) -> bool:
    """``%run train.py``: the cell that failed reads the file again by itself."""
    raw = ctx.work.failed.raw if ctx.work.failed is not None else ""
    return "%run" in raw and all(os.path.basename(edit.file or "") in raw for edit in files)


def module_of(file: str) -> str | None:
    """The name of the loaded module that this file is."""
    real = os.path.realpath(file)
    for name, module in list(sys.modules.items()):
        if isinstance(module, types.ModuleType) and name != "__main__":
            found = module.__dict__.get("__file__")
            if type(found) is str and os.path.realpath(found) == real:
                return name
    return None


def reload_code(ctx: Context, file: str) -> str | None:
    """Code that loads the module again and rebinds the names that the notebook took from it."""
    name = module_of(file)
    if name is None:
        return None
    module = sys.modules[name]
    taken = []
    for own, live in list(ctx.finding.namespace.items()):
        if own.startswith("_") or isinstance(live, types.ModuleType):
            continue
        for original, value in module.__dict__.items():
            if value is live and getattr(live, "__module__", None) == name:
                taken.append(original if original == own else f"{original} as {own}")
                break
    lines = ["import importlib", f"import {name}", f"importlib.reload({_dotted(name)})"]
    if taken:
        lines.append(f"from {name} import {', '.join(sorted(taken))}")
    return "\n".join(lines)


def _dotted(name: str) -> str:
    return name


def _builders(ctx: Context, files: list[str]) -> set[str]:
    """Names of the workspace that come from these files: functions and classes."""
    modules = {module_of(file) for file in files}
    return {
        own
        for own, live in list(ctx.finding.namespace.items())
        if getattr(live, "__module__", None) in modules
        or (isinstance(live, types.ModuleType) and live.__name__ in modules)
    }

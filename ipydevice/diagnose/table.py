"""The table under the panel: names that the code in the traceback uses, frame by frame."""

from __future__ import annotations

from typing import Any

from ipydevice.diagnose.frames import Frame
from ipydevice.diagnosis import Row


def rows_of(frames: list[Frame]) -> list[Row]:
    """Rows for each frame: the user's first, the innermost at the top, then the libraries'."""
    from ipydevice.listing import frame_rows
    from ipydevice.placement import FactReader

    reader = FactReader()
    rows: list[Row] = []
    ordered = [f for f in reversed(frames) if f.is_user] + [f for f in reversed(frames) if not f.is_user]
    seen: set[tuple[int, str, int]] = set()  # a function that calls itself shows what changes from call to call
    for frame in ordered:
        code = id(frame.frame.f_code)
        used = {name: live for name, live in _used(frame).items() if (code, name, id(live)) not in seen}
        seen.update((code, name, id(live)) for name, live in used.items())
        rows += frame_rows(used, title(frame), frame.is_user, reader=reader)
    return rows


def title(frame: Frame) -> str:
    """``In [7] train()`` or ``torch/nn/modules/linear.py forward()``."""
    function = "" if frame.function == "<module>" else f" {frame.function}()"
    if frame.source is not None and frame.source.cell is not None:
        return f"In [{frame.source.cell.number}]{function}"
    parts = frame.file.replace("\\", "/").split("/")
    for marker in ("site-packages", "dist-packages"):
        if marker in parts:
            return "/".join(parts[parts.index(marker) + 1 :]) + function
    return parts[-1] + function


def _used(frame: Frame) -> dict[str, Any]:
    """Locals of the frame and the globals that its code mentions."""
    code = frame.frame.f_code
    names: dict[str, Any] = {}
    mentioned = set(code.co_names)
    if frame.function != "<module>":
        names.update(dict.items(frame.frame.f_locals))
    for name in code.co_names:
        if name in frame.frame.f_globals and name not in names and name in mentioned:
            names[name] = frame.frame.f_globals[name]
    return {name: live for name, live in names.items() if not name.startswith("__")}

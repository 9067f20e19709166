"""The public questions about many processes."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from ipydevice import placement, session
from ipydevice.devicecheck import callsite
from ipydevice.ranks.report import RanksReport
from ipydevice.toolbox.callers import argument_names


def as_models(model: Any, name: str = "model") -> dict[str, Any]:
    """Modules by name, from what a caller may give; `name` is that of a single one.

    Raises:
        TypeError: it is no module, nor a dictionary of modules.
    """
    if model is None:
        return {}
    models = model if isinstance(model, dict) else {name: model}
    for called, one in models.items():
        if not placement.is_module(one):
            raise TypeError(
                f"expected an nn.Module, or a dictionary of them by name, and {called!r} is a {type(one).__name__}"
            )
    return models


def debug_ddp(model: Any = None, *, timeout: float = 10.0, to: int = 0) -> RanksReport | None:
    """What is wrong with devices in a program of several processes; call it in every one of them.

    Rank `to` gets the table of all ranks, with what differs between them, the others None: ``print(debug_ddp(model)
    or "")``. Tells of: a current device that is not the model's (no ``set_device``), device_ids against where the
    model is, RANK used for LOCAL_RANK, two ranks on one card, tensors that the back end cannot move, BatchNorm and
    SyncBatchNorm, memory on another rank's card, models that are not the same, ranks that do not answer. Without a
    process group it tells of this process alone.

    Rows go through the group's store; no collective is called, no group is made, nothing waits on a card. A rank
    that does not call this is named after `timeout` seconds and disturbs nothing.

    Args:
        model: a module, wrapped or not, or several as a dictionary; by default those that the caller has names for.
        timeout: seconds to wait for ranks that have not told.
        to: the rank that gets the table.

    Raises:
        TypeError: `model` is no module.
        ValueError: `to` is no rank of the group.
    """
    caller = sys._getframe(1)
    models = _models_around(caller) if model is None else as_models(model, _written(caller))
    return collect(models, timeout=timeout, to=to)


def _written(frame: FrameType) -> str:
    """The name by which the caller gives its model; "model" where it gives no name."""
    (name,) = argument_names(frame, 1)
    return name if name.replace(".", "").isidentifier() else "model"


def _models_around(frame: FrameType) -> dict[str, Any]:
    """The modules that the code of `frame` names."""
    from ipydevice.ranks.modules import models_in

    try:
        return models_in({**frame.f_globals, **frame.f_locals})
    finally:
        callsite.forget_locals(frame)


def collect(models: dict[str, Any], *, timeout: float = 10.0, to: int = 0) -> RanksReport | None:
    """The table: of a process group, of an ipyparallel cluster whose client this is, or of this process alone."""
    from ipydevice.ranks import engines, here, store
    from ipydevice.ranks.across import compared

    if here.grouped():
        return store.collect(models, timeout=timeout, to=to)
    view = engines.active_view(session.current_shell())
    if view is not None:
        return engines.collect(view, timeout=timeout)
    return compared(RanksReport((here.row(models),)))

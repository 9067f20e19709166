"""The public questions about many processes."""

from __future__ import annotations

import sys
from typing import Any

from ipydevice import placement, session
from ipydevice.ranks.report import RanksReport


def as_models(model: Any) -> dict[str, Any]:
    """Modules by name, from what a caller may give.

    Raises:
        TypeError: it is no module, nor a dictionary of modules.
    """
    if model is None:
        return {}
    models = model if isinstance(model, dict) else {"model": model}
    for name, one in models.items():
        if not placement.is_module(one):
            raise TypeError(
                f"expected an nn.Module, or a dictionary of them by name, and {name!r} is a {type(one).__name__}"
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
        model: a module, wrapped or not, or several as a dictionary; by default those that the caller's namespace
            names.
        timeout: seconds to wait for ranks that have not told.
        to: the rank that gets the table.

    Raises:
        TypeError: `model` is no module.
        ValueError: `to` is no rank of the group.
    """
    from ipydevice.ranks import here

    models = here.models_in(sys._getframe(1).f_globals) if model is None else as_models(model)
    return collect(models, timeout=timeout, to=to)


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

"""Mixed precision: whether model, optimizer, scaler and autocast speak of one device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ipydevice import placement
from ipydevice.placement.kinds import attributes
from ipydevice.toolbox.troubles import Trouble, Troubles, need_module, some

_LEAST_SCALE = 1.0  # below it gradients have overflowed at scales that only shrink further


def amp_check(model: Any, optimizer: Any = None, scaler: Any = None) -> Troubles:
    """What would go wrong, or silently do nothing, in a training step under `torch.autocast`.

    Looks at the devices of parameters, gradients and the scaler, at parameters in float16 (their gradients cannot
    be unscaled), at parameters that the optimizer does not have, and at autocast itself where it is on: call it
    inside the ``with torch.autocast(...)`` block to have its device type compared. Reads no values but the
    scaler's scale.

    Raises:
        TypeError: `model` is no module, `optimizer` no optimizer, or `scaler` no GradScaler.
    """
    need_module(model, "amp_check(model, optimizer, scaler)")
    if optimizer is not None and not placement.is_optimizer(optimizer):
        raise TypeError(f"optimizer has to be a torch.optim.Optimizer, but is of type {type(optimizer).__name__}")
    if scaler is not None and placement.kind_of(scaler) != "scaler":
        raise TypeError(f"scaler has to be a torch.amp.GradScaler, but is of type {type(scaler).__name__}")
    parameters = dict(model.named_parameters())
    found = [*_of_devices(parameters), *_of_autocast(parameters)]
    if optimizer is not None:
        found += _of_optimizer(parameters, optimizer)
    if scaler is not None:
        found += _of_scaler(parameters, scaler)
    return Troubles("mixed precision", tuple(found))


def _by_device(parameters: dict[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, parameter in parameters.items():
        found.setdefault(placement.device_of(parameter), []).append(name)
    return found


def _of_devices(parameters: dict[str, Any]) -> Iterator[Trouble]:
    with placement.quiet():
        stray = [name for name, p in parameters.items() if list(placement.FactReader().stray_gradients((p,)))]
    if stray:
        yield Trouble(
            f"the gradients of {some(stray)} are on another device than their parameters",
            "check_gradient_devices(model, fix=True)",
            "gradient_device",
        )


def _of_autocast(parameters: dict[str, Any]) -> Iterator[Trouble]:
    kinds = list(dict.fromkeys(device.partition(":")[0] for device in _by_device(parameters)))
    on = [kind for kind in dict.fromkeys([*kinds, "cuda", "cpu"]) if _autocast_on(kind)]
    missing = [kind for kind in kinds if kind not in on]
    if on and missing:
        yield Trouble(
            f"autocast is on for {', '.join(on)} and the model is on {', '.join(missing)}, where it changes nothing",
            f"torch.autocast({missing[0]!r}, ...)",
            "autocast_device",
        )


def _autocast_on(kind: str) -> bool:
    try:
        return bool(torch.is_autocast_enabled(kind))
    except RuntimeError:  # meta, and kinds without autocast
        return False


def _of_optimizer(parameters: dict[str, Any], optimizer: Any) -> Iterator[Trouble]:
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    own = {id(p) for p in parameters.values()}
    trained = [name for name, p in parameters.items() if p.requires_grad and id(p) not in held]
    if not held & own:
        yield Trouble(
            "the optimizer holds none of the model's parameters", "make it anew, after the model", "other_parameters"
        )
    elif trained:
        yield Trouble(
            f"the optimizer does not have {some(trained)}, though they want gradients",
            "add_param_group(), or requires_grad_(False)",
            "other_parameters",
            certain=False,
        )
    for p, state in optimizer.state.items():
        where = placement.device_of(p)
        placed = [(name, placement.device_of(t)) for name, t in state.items() if placement.is_tensor(t)]
        stray = [name for name, device in placed if device != where and name != "step"]
        if stray:
            yield Trouble(
                f"the optimizer's {some(stray)} for a parameter on {where} is elsewhere",
                "load its state after the model has moved",
                "optimizer_state",
            )
            return


def _of_scaler(parameters: dict[str, Any], scaler: Any) -> Iterator[Trouble]:
    held = attributes(scaler)
    kind, places = str(held.get("_device", "cuda")), _by_device(parameters)
    kinds = {device.partition(":")[0] for device in places}
    if not scaler.is_enabled():
        if kind in kinds:
            yield Trouble("the scaler is switched off", "GradScaler(enabled=True)", "scaler_off", certain=False)
        elif kinds:
            yield Trouble(
                f"the scaler is for {kind}, which is not here, and has switched itself off",
                f"torch.amp.GradScaler({sorted(kinds)[0]!r})",
                "scaler_device",
            )
        return
    if kinds and kind not in kinds:
        yield Trouble(
            f"the scaler is for {kind} and the model is on {', '.join(places)}",
            f"torch.amp.GradScaler({sorted(kinds)[0]!r})",
            "scaler_device",
        )
    scale = held.get("_scale")
    if placement.is_tensor(scale) and placement.device_of(scale) not in places:
        yield Trouble(
            f"the scale is on {placement.device_of(scale)} and the model on {', '.join(places)}",
            "make the scaler anew after moving the model, or scale a loss that is on the model's device",
            "scaler_device",
        )
    half = [name for name, p in parameters.items() if placement.dtype_of(p) == "float16"]
    if half:
        yield Trouble(
            f"{some(half)} are float16 themselves: GradScaler cannot unscale their gradients",
            "keep the model in float32 and let autocast choose; or bfloat16 without a scaler",
            "float16_parameters",
        )
    now = scaler.get_scale()
    if now < _LEAST_SCALE:
        text = f"the scale has shrunk to {now:g}: steps keep being skipped because gradients are inf or nan"
        yield Trouble(text, "nan_watch(model) names the first module or call that makes them", "scale_shrunk")

"""Code that moves what an optimizer keeps to the devices of its parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import is_of
from ipydevice.placement.kinds import attributes

_STATE = """\
for {param}, {state} in {name}.state.items():
    for {key}, {value} in {state}.items():
        if {key} != "step" and hasattr({value}, "to"):
            {state}[{key}] = {value}.to({param}.device)"""
_GROUPS = """\
for {group} in {name}.param_groups:
    for {key}, {value} in {group}.items():
        if {key} {kept} and hasattr({value}, "to"):
            {group}[{key}] = {value}.to({group}["params"][0].device)"""
# LBFGS keeps lists of tensors (torch/optim/lbfgs.py), an optimizer of the user's may keep anything.
_MOVED = """\
def {moved}({value}, {device}):
    if isinstance({value}, dict):
        return {{{key}: {part} if {key} == "step" else {moved}({part}, {device}) for {key}, {part} in {value}.items()}}
    if isinstance({value}, (list, tuple)):
        return type({value})({moved}({part}, {device}) for {part} in {value})
    return {value}.to({device}) if hasattr({value}, "to") else {value}

"""
_DEEP_STATE = """\
for {param}, {state} in {name}.state.items():
    {name}.state[{param}] = {moved}({state}, {where})"""
_DEEP_GROUPS = """\
for {group} in {name}.param_groups:
    for {key}, {value} in {group}.items():
        if {key} {kept}:
            {group}[{key}] = {moved}({value}, {group}["params"][0].device)"""
_NAMES = ("param", "state", "key", "value", "group", "moved", "part", "device")
_DEEP = 6  # containers in containers, followed so far


def moving(optimizer: Any, name: str, taken: Collection[str]) -> str:
    """Code that moves the tensors of ``name.state``, and those of ``name.param_groups`` where any of them is astray.

    It binds no name in `taken`. Of an object that is no optimizer, or None, only the usual is known.
    """
    states, groups = _states(optimizer), _groups(optimizer)
    kept = [(value, _device(group)) for group in groups for key, value in group.items() if key not in ("params", "lr")]
    astray = [value for value, device in kept if any(placement.device_of(one) != device for one in _tensors(value))]
    parts: list[str] = []
    deep = False
    if not astray or any(_stays_behind(key, state, groups) for key, state in states.items()):
        unusual = any(not placement.is_tensor(key) or _is_deep(state) for key, state in states.items())
        parts.append(_DEEP_STATE if unusual else _STATE)
        deep = unusual
    if astray:
        nested = not all(placement.is_tensor(value) for value in astray)
        parts.append(_DEEP_GROUPS if nested else _GROUPS)
        deep = deep or nested
    text = "\n".join([_MOVED + parts[0], *parts[1:]] if deep else parts)
    used = [word for word in _NAMES if f"{{{word}}}" in text]
    words = {word: f"{word}_" if any(one in taken for one in used) else word for word in used}
    with_rate = any(placement.is_tensor(group.get("lr")) for group in groups)
    words["kept"] = 'not in ("params", "lr")' if with_rate else '!= "params"'  # a rate is read on the host
    if "{where}" in text:
        words["where"] = f"{words['param']}.device"
        if not all(placement.is_tensor(key) for key in states):  # opt.state["d"] belongs to no parameter
            words["where"] = f'getattr({words["param"]}, "device", {name}.param_groups[0]["params"][0].device)'
    return text.format(name=name, **words)


def _states(optimizer: Any) -> dict[Any, Any]:
    held: Any = attributes(optimizer).get("state") if placement.is_optimizer(optimizer) else None
    return dict(dict.items(held)) if is_of(held, dict) else {}


def _groups(optimizer: Any) -> list[dict[str, Any]]:
    held = attributes(optimizer).get("param_groups") if placement.is_optimizer(optimizer) else None
    return [group for group in held if type(group) is dict and group.get("params")] if type(held) is list else []


def _device(group: dict[str, Any]) -> str | None:
    return placement.device_of(group["params"][0])


def _tensors(value: Any, depth: int = 0) -> Iterator[Any]:
    if placement.is_tensor(value):
        yield value
    elif depth < _DEEP:
        for part in _parts(value):
            yield from _tensors(part, depth + 1)


def _parts(value: Any) -> list[Any]:
    if type(value) is dict:
        return [part for key, part in value.items() if key != "step"]
    return list(value) if type(value) in (list, tuple) else []


def _is_deep(state: Any) -> bool:
    """Does a state hold tensors in lists, dicts or tuples, or is it a tensor itself?"""
    return type(state) is not dict or any(True for part in _parts(state) for one in _parts(part) for _ in _tensors(one))


def _stays_behind(key: Any, state: Any, groups: list[dict[str, Any]]) -> bool:
    device = placement.device_of(key) if placement.is_tensor(key) else _device(groups[0]) if groups else None
    return any(placement.device_of(one) != device for one in _tensors(state))

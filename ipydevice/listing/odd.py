"""What is odd about one object, as far as the object itself tells.

Each answer is a few words with the remedy, or "" where nothing is odd.  A correct program must
stay without a word, so a tensor on another device counts only where the code computes with it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ipydevice import placement
from ipydevice.listing.methods import moves_tensors, reads_unmoved
from ipydevice.listing.survey import Many, One, Survey
from ipydevice.placement import FactReader
from ipydevice.placement.kinds import attributes, home_of
from ipydevice.placement.members import MODULE_HOOKS, is_container

META = "meta"
_MOST_NAMED = 2  # tensors that one remark names


def of_object(found: Survey, reader: FactReader, name_of: Callable[[Any], str]) -> str:
    """What is odd about an object of any kind; `name_of` knows how a parameter is reached, or says ""."""
    if isinstance(found, One):
        return _of_gradients(found, reader) if found.facts.requires_grad else ""
    if found.kind == "module":
        remarks = (_of_split(found, reader), _of_loose(found, reader), _of_gradients(found, reader))
        return "; ".join(remark for remark in remarks if remark)
    if found.kind == "optimizer":
        return _of_state(found, reader, name_of)
    return ""


def submodules(root: Any) -> Iterator[tuple[str, Any]]:
    """Registered modules with their paths, the root first with ""; each once."""
    seen = {id(root): root}
    waiting = [("", root)]
    for path, module in waiting:
        yield path, module
        for member in placement.members(module):
            if member.via == "module" and id(member.value) not in seen and placement.is_module(member.value):
                seen[id(member.value)] = member.value
                waiting.append((path + member.path, member.value))


def has_device_map(module: Any) -> bool:
    """Whether accelerate spreads the module and moves its inputs itself."""
    return any(
        "hf_device_map" in held or "_hf_hook" in held for held in (attributes(part) for _, part in submodules(module))
    )


def wants_split(module: Any) -> bool:
    """Whether a forward of its classes moves tensors between the devices."""
    classes = {id(type(part)): part for _, part in submodules(module)}
    return any(moves_tensors(part) for part in classes.values())


def _of_split(found: Many, reader: FactReader) -> str:
    devices = found.registered
    if len(devices) < 2 or has_device_map(found.value):
        return ""
    most = devices.most_common(1)[0][0]
    if devices[META]:
        names = _names(found.value, lambda tensor: reader.device(tensor) == META)
        return f"{names} still on meta: load the weights"
    if wants_split(found.value):
        return ""
    # A host device beside an accelerator is what was left behind, however many tensors it holds.
    stray = "cpu" if "cpu" in devices else devices.most_common()[-1][0]
    target = most if most != stray else next(device for device in devices if device != stray)
    names = _names(found.value, lambda tensor: reader.device(tensor) == stray)
    return f"{names} on {stray}, the rest on {target}: {found.name}.to({target!r})"


def _of_loose(found: Many, reader: FactReader) -> str:
    """Tensors that the module's code computes with but ``.to()`` does not move."""
    if len(found.registered) != 1 or len(found.counts) < 2:
        return ""
    home = next(iter(found.registered))
    if home == META:
        return ""
    strays = [
        (path + member, device, kind)
        for path, module in submodules(found.value)
        for member, device, kind in _strays_of(module, home, reader)
    ]
    if not strays:
        return ""
    path, device, kind = strays[0]
    more = f" and {len(strays) - 1} more" if len(strays) > 1 else ""
    return f"{path.removeprefix('.')}{more} on {device}, which .to() does not move: {_REMEDIES[kind]}"


_REMEDIES = {
    "tensor": "register_buffer",
    "container": "a ModuleList, ModuleDict or buffers",
    "object": "make it a Module with buffers",
}


def _strays_of(module: Any, home: str, reader: FactReader) -> Iterator[tuple[str, str, str]]:
    """Path, device and sort of what a module's own code computes with and ``.to()`` leaves elsewhere than `home`."""
    if home_of(module) == "torch":
        return
    for member in placement.members(module):
        name = member.path[1:]
        if member.via != "attribute" or name in MODULE_HOOKS:
            continue
        value = member.value
        if placement.is_tensor(value) or is_container(value) or placement.is_module(value):
            device = _device_elsewhere(value, home, reader)
            if device and reads_unmoved(module, name):
                yield member.path, device, "tensor" if placement.is_tensor(value) else "container"
        elif attributes(value) and home_of(value) not in placement.NO_TENSORS:
            for inner in placement.members(value):
                device = _device_elsewhere(inner.value, home, reader) if placement.is_tensor(inner.value) else ""
                if device and (reads_unmoved(module, name, inner.path[1:]) or reads_unmoved(value, inner.path[1:])):
                    yield member.path + inner.path, device, "object"


def _device_elsewhere(value: Any, home: str, reader: FactReader) -> str:
    """Device of the first tensor with dimensions, in a tensor, container or module, that is not on `home`."""
    if placement.is_tensor(value):
        tensors: Any = (value,)
    elif is_container(value) or placement.is_module(value):
        tensors = placement.inside(value)
    else:
        return ""
    for tensor in tensors:
        device = reader.device(tensor)
        if device != home and device != META and reader.facts(tensor).shape != ():
            return device
    return ""


def _of_gradients(found: Survey, reader: FactReader) -> str:
    for tensor, gradient in reader.stray_gradients(found.tensors):
        name = "" if isinstance(found, One) else _names(found.value, lambda other, t=tensor: other is t) + ": "
        return f"{name}gradient on {reader.device(gradient)}: zero_grad() and backward() again"
    return ""


def _of_state(found: Many, reader: FactReader, name_of: Callable[[Any], str]) -> str:
    if len(found.counts) < 2:
        return ""
    for one in placement.walk(found.value, limit=placement.MOST_MEMBERS):
        if one.via != "state" or not placement.is_tensor(one.key) or one.attribute.endswith("['step']"):
            continue
        device, wanted = reader.device(one.value), reader.device(one.key)
        if device != wanted and reader.facts(one.value).shape != ():
            whose = name_of(one.key) or "its parameter"
            return f"{one.attribute} on {device}, {whose} on {wanted}: load or make the state after the move"
    return ""


def _names(module: Any, is_meant: Any) -> str:
    """Paths of the registered tensors that are meant: "fc.weight, fc.bias and 3 more"."""
    paths = [
        (path + member.path).removeprefix(".")
        for path, part in submodules(module)
        for member in placement.members(part)
        if member.via in ("parameter", "buffer") and is_meant(member.value)
    ]
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(paths[:_MOST_NAMED]) + more

"""What is odd about one object, as far as the object itself tells.

Each answer is a few words with the remedy, or None where nothing is odd.  A correct program must
stay without a word, so a tensor on another device counts only where the code computes with it as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ipydevice import placement
from ipydevice.language import Sentence, joined, say
from ipydevice.listing.methods import moves_tensors, reads_unmoved
from ipydevice.listing.oddity import Clue, Oddity
from ipydevice.listing.survey import Many, One, Survey
from ipydevice.placement import FactReader
from ipydevice.placement.kinds import attributes, home_of
from ipydevice.placement.members import MODULE_HOOKS, ClassParts, is_container

META = "meta"
_MOST_NAMED = 2  # tensors that one remark names


def of_object(found: Survey, reader: FactReader, name_of: Callable[[Any], str]) -> list[Oddity]:
    """What is odd about an object of any kind; `name_of` knows how a parameter is reached, or says ""."""
    if isinstance(found, One):
        if not found.facts.requires_grad:
            return []
        remarks = [_of_gradients(found, reader)]
    elif found.kind == "module":
        remarks = [_of_split(found, reader), _of_loose(found, reader), _of_gradients(found, reader)]
    elif found.kind == "optimizer":
        remarks = [_of_state(found, reader, name_of)]
    else:
        return []
    return [remark for remark in remarks if remark is not None]


def submodules(root: Any, parts: ClassParts | None = None) -> Iterator[tuple[str, Any]]:
    """Registered modules with their paths, the root first with ""; each once."""
    seen = {id(root): root}
    waiting = [("", root)]
    for path, module in waiting:
        yield path, module
        for member in placement.members(module, parts):
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


def _of_split(found: Many, reader: FactReader) -> Oddity | None:
    if len(found.registered) < 2 or has_device_map(found.value):
        return None
    if found.registered[META]:
        names = _names(found.value, lambda tensor: reader.device(tensor) == META)
        home = next((device for device in found.registered if device != META), "cpu")
        first = next(path for path, part in submodules(found.value) if META in map(reader.device, _own_tensors(part)))
        return Oddity(
            say("{names} still on meta: load the weights", names=names),
            clues=(Clue("meta_not_materialized", found.name + first, META, home),),
            copy=f"{found.name}.load_state_dict(weights, assign=True)",
        )
    # A number without dimensions, such as the count of an AveragedModel, may meet tensors of any device.
    devices = Counter(reader.device(tensor) for tensor in found.inside.registered if reader.facts(tensor).shape != ())
    if len(devices) < 2 or wants_split(found.value):
        return None
    most = devices.most_common(1)[0][0]
    # A host device beside an accelerator is what was left behind, however many tensors it holds.
    stray = "cpu" if "cpu" in devices else devices.most_common()[-1][0]
    target = most if most != stray else next(device for device in devices if device != stray)
    names = _names(found.value, lambda tensor: reader.device(tensor) == stray)
    code = f"{found.name}.to({target!r})"
    late = [
        Clue("module_added_after_move", found.name + one.path, stray, target, found.name, one.path.removeprefix("."))
        for one in placement.members(found.value)
        if one.via == "module" and placement.devices_of(one.value) == (stray,)
    ]
    clues = (*late[:1], Clue("model_not_moved", found.name, stray, target))
    return Oddity(
        say("{names} on {stray}, the rest on {target}: {code}", names=names, stray=stray, target=target, code=code),
        code,
        clues=clues,
    )


def _of_loose(found: Many, reader: FactReader) -> Oddity | None:
    """Tensors that the module's code computes with but ``.to()`` does not move."""
    if len(found.registered) != 1 or len(found.counts) < 2:
        return None
    home = next(iter(found.registered))
    if home == META:
        return None
    strays = [
        (path, stray)
        for path, module in submodules(found.value, reader.parts)
        for stray in _strays_of(module, home, reader)
    ]
    if not strays:
        return None
    path, stray = strays[0]
    where = (path + stray.path).removeprefix(".")
    if len(strays) > 1:
        where = say("{names} and {count} more", names=where, count=len(strays) - 1)
    remedy = say(_REMEDIES[stray.kind])
    return Oddity(
        say(
            "{names} on {device}, which .to() does not move: {remedy}", names=where, device=stray.device, remedy=remedy
        ),
        "\n".join(filter(None, (_moved(found.name + path, one, home) for path, one in strays))),
        say("in the class: {remedy}, or the next model has it again", remedy=remedy),
        clues=(
            Clue(
                _CAUSES[stray.kind],
                found.name + path + stray.path,
                stray.device,
                home,
                found.name + path,
                stray.path[1:],
            ),
        ),
    )


_REMEDIES: dict[str, Sentence] = {
    "tensor": "register_buffer",
    "container": "a ModuleList, ModuleDict or buffers",
    "modules": "a ModuleList, ModuleDict or buffers",
    "object": "make it a Module with buffers",
}


_CAUSES = {
    "tensor": "plain_tensor_attribute",
    "container": "plain_tensor_attribute",
    "modules": "module_in_plain_container",
    "object": "plain_tensor_attribute",
}


class _Stray(NamedTuple):
    path: str  # in its module: ".pe"
    device: str
    kind: str  # as in _REMEDIES
    value: Any


def _moved(owner: str, stray: _Stray, home: str) -> str:
    """A line that moves a stray and, where it can, lets ``.to()`` move it from now on."""
    place, value, name = owner + stray.path, stray.value, stray.path[1:]
    if stray.kind == "tensor" and name.isidentifier():
        # Assigned again it would stay a plain attribute; a class may also have it in its body.
        return (
            f"_moved = {place}.to({home!r})\n{owner}.__dict__.pop({name!r}, None)\n"
            f"{owner}.register_buffer({name!r}, _moved, persistent=False)\ndel _moved"
        )
    if stray.kind == "object":
        return f"{place} = {place}.to({home!r})"
    return moved_container(place, value, home)


def moved_container(place: str, value: Any, device: str) -> str:
    """A line that moves a list, tuple or dictionary of nothing but tensors, or but modules; "" for others."""
    kind = type(value)
    items = list(dict.values(value)) if kind is dict else list(value) if kind is list or kind is tuple else []
    if items and all(map(placement.is_tensor, items)):
        if kind is dict:
            return f"{place} = {{key: tensor.to({device!r}) for key, tensor in {place}.items()}}"
        inner = f"tensor.to({device!r}) for tensor in {place}"
        return f"{place} = [{inner}]" if kind is list else f"{place} = tuple({inner})"
    if items and all(map(placement.is_module, items)):
        values = f"{place}.values()" if kind is dict else place
        return f"for module in {values}:\n    module.to({device!r})"
    return ""


def _strays_of(module: Any, home: str, reader: FactReader) -> Iterator[_Stray]:
    """What a module's own code computes with and ``.to()`` leaves elsewhere than `home`."""
    if home_of(module) == "torch":
        return
    for member in placement.members(module, reader.parts):
        name = member.path[1:]
        if member.via != "attribute" or name in MODULE_HOOKS:
            continue
        value = member.value
        if placement.is_tensor(value) or is_container(value) or placement.is_module(value):
            device = _device_elsewhere(value, home, reader)
            if device and _reads(module, (name,), reader):
                yield _Stray(member.path, device, _sort_of(value), value)
        elif attributes(value) and home_of(value) not in placement.NO_TENSORS:
            for inner in placement.members(value, reader.parts):
                device = _device_elsewhere(inner.value, home, reader) if placement.is_tensor(inner.value) else ""
                if not device:
                    continue
                if _reads(module, (name, inner.path[1:]), reader) or _reads(value, (inner.path[1:],), reader):
                    yield _Stray(member.path + inner.path, device, "object", inner.value)


def _reads(owner: Any, names: tuple[str, ...], reader: FactReader) -> bool:
    """`reads_unmoved`, asked once for all objects of a class: a deep model has thousands."""
    question = id(type(owner)), names
    answer = reader.unmoved.get(question)
    if answer is None:
        answer = reader.unmoved[question] = reads_unmoved(owner, *names)
    return answer


def _sort_of(value: Any) -> str:
    if placement.is_tensor(value):
        return "tensor"
    kind = type(value)
    items = list(dict.values(value)) if kind is dict else list(value) if kind is list or kind is tuple else []
    return "modules" if any(map(placement.is_module, items)) else "container"


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


def _of_gradients(found: Survey, reader: FactReader) -> Oddity | None:
    for tensor, gradient in reader.stray_gradients(found.tensors):
        alone = isinstance(found, One)
        words = say("gradient on {device}: zero_grad() and backward() again", device=reader.device(gradient))
        if not alone:
            words = say("{names}: {words}", names=_names(found.value, lambda other, t=tensor: other is t), words=words)
        code = f"{found.name}.grad = None" if alone else f"{found.name}.zero_grad()"
        return Oddity(words, code, say("then backward() again"))
    return None


def _of_state(found: Many, reader: FactReader, name_of: Callable[[Any], str]) -> Oddity | None:
    if len(found.counts) < 2:
        return None
    for one in placement.walk(found.value, limit=placement.MOST_MEMBERS):
        if one.via != "state" or not placement.is_tensor(one.key) or one.attribute.endswith("['step']"):
            continue
        device, wanted = reader.device(one.value), reader.device(one.key)
        if device != wanted and reader.facts(one.value).shape != ():
            whose = name_of(one.key)
            words = say(
                "{state} on {device}, {parameter} on {wanted}: load or make the state after the move",
                state=one.attribute,
                device=device,
                parameter=whose or say("its parameter"),
                wanted=wanted,
            )
            # Loading moves each state to its parameter (torch/optim/optimizer.py, load_state_dict).
            code = f"{found.name}.load_state_dict({found.name}.state_dict())"
            model = whose.partition(".")[0].partition("[")[0]
            path = f"{found.name}.{one.attribute}"
            clue = Clue("optimizer_state", path, device, wanted, found.name, one.attribute, model)
            return Oddity(words, code, clues=(clue,))
    return None


def _own_tensors(module: Any) -> Iterator[Any]:
    return (member.value for member in placement.members(module) if member.via in ("parameter", "buffer"))


def _names(module: Any, is_meant: Any) -> str:
    """Paths of the registered tensors that are meant: "fc.weight, fc.bias and 3 more"."""
    paths = [
        (path + member.path).removeprefix(".")
        for path, part in submodules(module)
        for member in placement.members(part)
        if member.via in ("parameter", "buffer") and is_meant(member.value)
    ]
    names = joined(paths[:_MOST_NAMED])
    more = len(paths) - _MOST_NAMED
    return say("{names} and {count} more", names=names, count=more) if more > 0 else names

"""What is odd between the objects of a workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from ipydevice import placement
from ipydevice.language import say
from ipydevice.listing import odd, texts
from ipydevice.listing.oddity import Clue, Oddity
from ipydevice.listing.survey import Many, Survey
from ipydevice.placement import FactReader
from ipydevice.placement.kinds import attributes


def remarks(everything: Sequence[Survey], cells: Sequence[str], reader: FactReader) -> dict[str, list[Oddity]]:
    """By name, what is odd in the light of the others and of the cells' texts."""
    said: dict[str, list[Oddity]] = {}
    for name, oddity in _stale_optimizers(everything, reader):
        said.setdefault(name, []).append(oddity)
    if cells:
        for name, oddity in texts.remarks(everything, cells, reader):
            said.setdefault(name, []).append(oddity)
    return said


class ParameterNames:
    """Names of parameters as reached through a module of the workspace; found out when first asked for."""

    def __init__(self, everything: Iterable[Survey]) -> None:
        self._modules = [(found.name, found.value) for found in everything if found.kind == "module"]

    def __call__(self, tensor: Any) -> str:
        """ "model.fc.weight", or "" where no module has it."""
        return self._names.get(id(tensor), "")

    @cached_property
    def _names(self) -> dict[int, str]:
        names: dict[int, str] = {}
        for name, module in self._modules:
            for path, part in odd.submodules(module):
                for member in placement.members(part):
                    if member.via == "parameter":
                        names.setdefault(id(member.value), name + path + member.path)
        return names


def _stale_optimizers(everything: Sequence[Survey], reader: FactReader) -> Iterator[tuple[str, Oddity]]:
    """Optimizers that step parameters which no name leads to, while a model of the same shapes is there.

    That is what remains when the cell that makes the model is run again, but not the optimizer's.
    """
    optimizers = [found for found in everything if found.kind == "optimizer"]
    if not optimizers:
        return
    reachable = {
        id(tensor) for found in everything if found.kind not in ("optimizer", "scheduler") for tensor in found.tensors
    }
    shapes = {
        found.name: _trainable(found, reader)
        for found in everything
        if isinstance(found, Many) and found.kind == "module"
    }
    for found in optimizers:
        steps = list(parameters_of(found.value))
        if not steps or any(id(parameter) in reachable for parameter in steps):
            continue
        wanted = sorted(str(reader.facts(parameter).shape) for parameter in steps)
        for name, trainable in shapes.items():
            if trainable == wanted:
                words = say("its parameters are no longer those of {name}: make it again after {name}", name=name)
                code = f"{found.name} = type({found.name})({name}.parameters(), **{found.name}.defaults)"
                note = say("its state starts anew, and groups of their own are one group")
                clue = Clue("stale_optimizer", found.name, found.device, found.device, beside=name)
                yield found.name, Oddity(words, code, note, (clue,))
                break


def _trainable(found: Many, reader: FactReader) -> list[str]:
    return sorted(
        str(reader.facts(tensor).shape) for tensor in found.inside.registered if placement.is_parameter(tensor)
    )


def parameters_of(optimizer: Any) -> Iterator[Any]:
    """The tensors in an optimizer's ``param_groups``."""
    groups = attributes(optimizer).get("param_groups")
    if type(groups) is not list:
        return
    for group in groups:
        parameters = group.get("params") if type(group) is dict else None
        if type(parameters) is list:
            yield from (parameter for parameter in parameters if placement.is_tensor(parameter))

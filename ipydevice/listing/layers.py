"""The layers of a module that is split over devices, in the order of their definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnosis import Layers
from ipydevice.placement import FactReader

MOST_RUNS = 64  # changes of device: a strip of more says nothing


def layers_of(root: Any, reader: FactReader) -> tuple[Layers, ...]:
    """Runs of layers on one device; a layer is a module with tensors of its own.

    A layer whose own tensors are on several devices counts for each: "cpu + cuda:0".
    """
    runs: list[Layers] = []
    for path, device in _layers(root, reader):
        if runs and runs[-1].device == device:
            last = runs[-1]
            runs[-1] = Layers(device, last.count + 1, last.first, path)
        else:
            runs.append(Layers(device, 1, path, path))
        if len(runs) > MOST_RUNS:
            return ()
    return tuple(runs) if len(runs) > 1 else ()


def _layers(root: Any, reader: FactReader) -> Iterator[tuple[str, str]]:
    seen: set[int] = set()
    stack = [("", root)]
    while stack:
        path, module = stack.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        own: list[Any] = []
        children: list[tuple[str, Any]] = []
        for member in placement.members(module):
            if member.via in ("parameter", "buffer"):
                if reader.facts(member.value).shape != ():  # a number may meet tensors of any device
                    own.append(member.value)
            elif member.via == "module" and placement.is_module(member.value):
                children.append((path + member.path, member.value))
        if own:
            yield path.removeprefix("."), " + ".join(reader.devices(own))
        stack += reversed(children)

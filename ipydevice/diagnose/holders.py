"""Who holds an object: its path from a name, and the chain of owners along that path."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, Scope, is_exactly, is_of, value
from ipydevice.placement.members import Via

_LOOKED_AT = 20_000  # members looked at in one search: a bound by count, never by the clock
_PRIVATE = ("_", "In", "Out", "get_ipython", "exit", "quit", "open")


@dataclass(slots=True)
class Holder:
    """One object on the way from a name to a tensor or module."""

    path: str  # its expression: "net.heads"
    value: Any
    via: Via | None  # how the one before holds it


def find(wanted: Any, names: Iterable[tuple[str, Any]]) -> list[Holder]:
    """The shortest way from one of the names to `wanted`, or to a tensor that shares its storage; empty: none."""
    is_tensor = placement.is_tensor(wanted)
    queue: deque[tuple[list[Holder], int]] = deque()
    seen: set[int] = set()
    for name, live in names:
        if name.startswith("_") or name in _PRIVATE:
            continue
        start = [Holder(name, live, None)]
        if live is wanted:
            return start
        if id(live) not in seen and _may_hold(live):
            seen.add(id(live))
            queue.append((start, 0))
    looked_at = 0
    while queue:
        chain, level = queue.popleft()
        for member in placement.members(chain[-1].value):
            looked_at += 1
            if looked_at > _LOOKED_AT:
                return []
            here = Holder(chain[-1].path + member.path, member.value, member.via)
            if member.value is wanted or (
                is_tensor and placement.is_tensor(member.value) and placement.same(member.value, wanted)
            ):
                return [*chain, here]
            if id(member.value) in seen or not _may_hold(member.value):
                continue
            seen.add(id(member.value))
            if level < 8:
                queue.append(([*chain, here], level + 1))
    return []


_LEAVES = (int, float, bool, str, bytes, complex, type(None), type(ast), type, type(len))


def is_container(live: Any) -> bool:
    """Whether an object is a mere container: its items belong to whoever holds it."""
    return is_of(live, dict, list, tuple, set, frozenset, deque)


def _may_hold(live: Any) -> bool:
    return not is_exactly(live, *_LEAVES) and not placement.is_tensor(live)


def along(root: Any, text: str, member: str) -> list[Holder]:
    """The owners from `root`, which is called `text`, down to ``text + member``, the last one included."""
    try:
        tree = ast.parse("_root_" + member, mode="eval").body
    except SyntaxError:
        return [Holder(text, root, None)]
    scope = Scope({"_root_": root}, {})
    nodes: list[ast.expr] = []
    here: ast.expr = tree
    while not isinstance(here, ast.Name):
        nodes.append(here)
        if not isinstance(here, (ast.Attribute, ast.Subscript)):
            return [Holder(text, root, None)]
        here = here.value
    chain = [Holder(text, root, None)]
    for node in reversed(nodes):
        live = value(node, scope)
        if live is MISSING:
            break
        path = text + ast.unparse(node).removeprefix("_root_")
        chain.append(Holder(path, live, _via(chain[-1].value, live)))
    return chain


def _via(owner: Any, inner: Any) -> Via | None:
    return next((member.via for member in placement.members(owner) if member.value is inner), None)


def registered(module: Any) -> Iterator[Any]:
    """The parameters and buffers of a module and of the modules inside it: what ``.to()`` reaches, each once."""
    seen: set[int] = set()
    waiting = [module]
    while waiting and len(seen) < _LOOKED_AT:
        for member in placement.members(waiting.pop(0)):
            if member.via not in ("parameter", "buffer", "module") or id(member.value) in seen:
                continue
            seen.add(id(member.value))
            if member.via == "module":
                waiting.append(member.value)
            elif placement.is_tensor(member.value):
                yield member.value


def wholly_on(module: Any, device: str) -> bool:
    """Whether a module has parameters or buffers and all of them are on one device."""
    devices = {placement.device_of(tensor) for tensor in registered(module)}
    return devices == {device}

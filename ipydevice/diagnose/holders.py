"""Who holds an object: its path from a name, and the chain of owners along that path."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, Scope, is_exactly, is_of, value
from ipydevice.placement.kinds import attributes, home_of
from ipydevice.placement.members import MODULE_INTERNALS, Via

_LOOKED_AT = 20_000  # members looked at in one search: a bound by count, never by the clock
_PRIVATE = ("_", "In", "Out", "get_ipython", "exit", "quit", "open")


@dataclass(slots=True)
class Holder:
    """One object on the way from a name to a tensor or module."""

    path: str  # its expression: "net.heads"
    value: Any
    via: Via | None  # how the one before holds it


class Index:
    """Everything that some names lead to, looked at once: who holds it, and by which way.

    Lives for one diagnosis.  Breadth first, so the way to each object is the shortest.
    """

    def __init__(self, names: Iterable[tuple[str, Any]]) -> None:
        self._ways: dict[int, tuple[int | None, str, Via | None, Any]] = {}  # id -> (holder's id, step, via, object)
        self._by_storage: dict[tuple[int, int], int] = {}  # storage -> id of the first tensor in it
        queue: deque[tuple[Any, int]] = deque()
        for name, live in names:
            if not name.startswith("_") and name not in _PRIVATE and id(live) not in self._ways:
                self._ways[id(live)] = (None, name, None, live)
                if _may_hold(live):
                    queue.append((live, 0))
        looked_at = 0
        while queue and looked_at < _LOOKED_AT:
            holder, level = queue.popleft()
            for path, live, via in _held(holder):
                looked_at += 1
                if id(live) in self._ways or is_exactly(live, *_LEAVES):
                    continue
                self._ways[id(live)] = (id(holder), path, via, live)
                if placement.is_tensor(live):
                    storage = placement.storage_of(live)
                    if storage is not None and storage[1] > 0:
                        self._by_storage.setdefault(storage, id(live))
                elif level < 8:
                    queue.append((live, level + 1))

    def find(self, wanted: Any) -> list[Holder]:
        """The way from a name to `wanted`, or to a tensor that shares its storage; empty where there is none."""
        key: int | None = id(wanted)
        if key not in self._ways:
            storage = placement.storage_of(wanted) if placement.is_tensor(wanted) else None
            key = self._by_storage.get(storage) if storage is not None else None
        steps: list[tuple[str, Any, Via | None]] = []
        while key is not None:
            key, path, via, live = self._ways[key]
            steps.append((path, live, via))
        chain: list[Holder] = []
        for path, live, via in reversed(steps):
            chain.append(Holder((chain[-1].path if chain else "") + path, live, via))
        return chain


_TABLES: tuple[tuple[str, Via], ...] = (("_parameters", "parameter"), ("_buffers", "buffer"), ("_modules", "module"))


def _held(holder: Any) -> Iterator[tuple[str, Any, Via]]:
    """What an object holds, one level deep. Of modules only what is the instance's own: a deep model has thousands."""
    if not placement.is_module(holder):
        yield from ((member.path, member.value, member.via) for member in placement.members(holder))
        return
    own = attributes(holder)
    keyed = any(_class_name(cls) in ("ModuleDict", "ParameterDict") for cls in type.mro(type(holder)))
    for table, via in _TABLES:
        held: Any = own.get(table)
        if is_of(held, dict):
            yield from ((_step(name, keyed), live, via) for name, live in list(dict.items(held)) if live is not None)
    for name, live in list(own.items()):
        hooks = name.endswith("_hooks") or "_hooks_" in name  # nn.Module keeps a dozen tables of them
        if name not in MODULE_INTERNALS and not hooks and not is_exactly(live, *_LEAVES):
            yield _step(name, False), live, "attribute"


def _class_name(cls: type) -> str:
    """Past any ``__getattribute__`` of a metaclass of the user's."""
    return str(type.__dict__["__name__"].__get__(cls))


def _step(name: str, keyed: bool) -> str:
    if keyed:
        return f"[{name!r}]"
    return f".{name}" if name.isidentifier() else f"[{name}]" if name.isdigit() else f"[{name!r}]"


_LEAVES = (int, float, bool, str, bytes, complex, type(None), type(ast), type, type(len))


def is_container(live: Any) -> bool:
    """Whether an object is a mere container: its items belong to whoever holds it."""
    return is_of(live, dict, list, tuple, set, frozenset, deque)


def _may_hold(live: Any) -> bool:
    """Reports of ours are of strings and numbers, and of thousands of objects."""
    return not is_exactly(live, *_LEAVES) and not placement.is_tensor(live) and home_of(live) != "ipydevice"


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

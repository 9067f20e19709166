"""How the code at one place would say "the device": with a name it already has."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import bindings
from ipydevice.diagnose.evaluate import MISSING, Scope, attribute, value
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.infer import FACTORIES, accelerator, call_name, device_name, with_index
from ipydevice.diagnose.source import once_a_node
from ipydevice.fixes.homebound import brought_home
from ipydevice.fixes.names import bound_by, last_name, root
from ipydevice.fixes.workspace import Workspace

_DEVICE_LIKE = re.compile(r"dev|cuda|gpu|host|accel|cpu|mps|xpu", re.IGNORECASE)
# Objects whose `device` is a property of a library, safe to name though it is not read here.
_BY_NAME = (1.25, 3.25, 4.25, 5.25)  # the ranks of what is told by name and use alone
_FAR = 40.0  # what a global tensor or model adds to its rank: a device variable is better
_DEVICE_PROPERTY = {"accelerate", "lightning", "pytorch_lightning", "transformers", "lightning_fabric"}


@dataclass(frozen=True, slots=True)
class Said:
    """An expression for the device, and whether its value was seen to be that device."""

    code: str
    seen: bool


def device_expression(work: Workspace, site: Site, *, avoid: frozenset[str] = frozenset()) -> Said | None:
    """The best expression at `site` for the device that the stray should be on; None where none is known.

    A literal such as ``"cuda:0"`` is the last resort.  Names in `avoid` are not asked for their device.
    """
    found = min(_candidates(work, site, avoid), key=lambda item: (item[0], len(item[1])), default=None)
    if found is not None:
        return Said(found[1], seen=found[0] not in _BY_NAME)
    target = work.finding.target
    return None if target is None else Said(repr(target).replace("'", '"'), seen=True)


def is_literal(code: str) -> bool:
    """Is this a device written out, which only this machine may have?"""
    return code[:1] in "\"'"


def is_target(work: Workspace, live: Any) -> bool:
    """Does this string or torch.device name the device that the stray should be on?"""
    target = work.finding.target
    torch = sys.modules.get("torch")
    if target is None or not (type(live) is str or (torch is not None and type(live) is torch.device)):
        return False
    named = device_name(live)
    return named is not None and (named == target or with_index(named) == with_index(target))


def _on_target(work: Workspace, live: Any) -> bool:
    target = work.finding.target
    return placement.is_tensor(live) and target is not None and placement.device_of(live) == target


def _candidates(work: Workspace, site: Site, avoid: frozenset[str]) -> Iterator[tuple[float, str]]:
    """(rank, code); the lower the rank the better."""
    yield from _from_moves(work, site)
    other = work.finding.other
    named = other.expression if other is not None and other.known and _on_target(work, other.value) else ""
    names = list(work.names(site))
    told = other.expression if other is not None and not other.known and other.expression.isidentifier() else ""
    if told and other is not None and told not in dict(names) and _beside(work, site, other.site):
        yield from _by_name(work, site, told)  # of a printed line, whose function's head is not shown
    for name, local in names:
        live = work.value(site, name)
        rank = 0.0 if local else _FAR
        if live is MISSING:
            yield from _by_name(work, site, name)
        elif is_target(work, live):
            likely = bool(_DEVICE_LIKE.search(name))
            if likely or type(live) is not str:
                yield (0 if local else 5.5) + (0 if likely else 1), name
        elif "rank" in name.lower() and type(live) is int and is_target(work, f"{accelerator()}:{live}"):
            yield 5.8 if "local" in name.lower() else 5.9, name  # `local_rank`: a number is a device of the accelerator
        elif _on_target(work, live):
            if name in avoid or _is_stray(work, live) or _moved_later(work, site, name):
                continue
            if not _starts_otherwise(work, site, name):
                optional = 1.0 if _may_be_none(site, name) else 0.0
                yield rank + optional + (2 if name == named else 2.2), f"{name}.device"
        elif placement.is_module(live):
            if name == "self" and not work.is_local(site, "self"):
                continue
            yield from ((rank + r, code) for r, code in _told(work, name, live))
        else:
            yield from ((rank + r, code) for r, code in _of_object(work, name, live))


def _may_be_none(site: Site, name: str) -> bool:
    """``labels=None`` of the function around: there now, and gone in the next call."""
    function = site.source.function(site.node)
    default = bindings.default_of(function, name) if function is not None else None
    return isinstance(default, ast.Constant) and default.value is None


def _told(work: Workspace, name: str, live: Any) -> list[tuple[float, str]]:
    """What a module tells; asked once, for large ones take long."""
    found = work.devices_told.get((name, id(live)))
    if found is None:
        found = work.devices_told[name, id(live)] = list(_of_module(work, name, live))
    return found


@once_a_node
def _told_to_calls(area: ast.AST) -> tuple[tuple[ast.Call, ast.expr, frozenset[str]], ...]:
    """(call, the device that it is told, the names in that) of all calls below `area`."""
    return tuple(
        (call, code, frozenset(n.id for n in ast.walk(code) if isinstance(n, ast.Name)))
        for call in ast.walk(area)
        if isinstance(call, ast.Call) and call is not area
        for code in _named_devices(call)
    )


def _from_moves(work: Workspace, site: Site) -> Iterator[tuple[float, str]]:
    """Devices that the same function, or the cell around it, already moves to."""
    source = site.source
    scopes = [*work.functions(source, site.node), source.tree]
    loops = [up for up in source.ancestors(site.node) if isinstance(up, (ast.For, ast.AsyncFor, ast.While))]
    for rank, area in enumerate([*loops, *scopes]):
        for call, code, names in _told_to_calls(area):
            if isinstance(code, ast.Constant) or not names:
                continue
            there = Site(source, call, site.frame)
            if _is_printed(work, site, code):
                yield _BY_NAME[0], source.segment(code)
            if not all(work.available(site, n) for n in names) or _differs(work, site, there, names):
                continue
            live = value(code, work.scope(site)) if not any(_gone(work, site, n) for n in names) else MISSING
            if is_target(work, live) and isinstance(code, (ast.Name, ast.Attribute)):
                local = all(work.is_local(site, n) for n in names)
                yield (-2.0 if area in loops else -1.0 if local else 5.2) + rank / 10, source.segment(code)


def _is_printed(work: Workspace, site: Site, code: ast.expr) -> bool:
    """Is it a device's name that printed lines move to and do not bind? Then all of them know it."""
    if work.finding.read is None or not isinstance(code, ast.Name) or not _DEVICE_LIKE.search(code.id):
        return False
    stored = (n.id for n in site.source.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return code.id not in stored and work.value(site, code.id) is MISSING and code.id not in work.globals_of(site)


def _named_devices(node: ast.AST) -> Iterator[ast.expr]:
    if not isinstance(node, ast.Call):
        return
    if isinstance(node.func, ast.Attribute) and node.func.attr == "to" and node.args:
        yield node.args[0]
    for keyword in node.keywords:
        if keyword.arg == "device":
            yield keyword.value


def _differs(work: Workspace, here: Site, there: Site, names: frozenset[str]) -> bool:
    """Could a name mean another thing at the other place?"""
    return any(work.is_local(here, name) != work.is_local(there, name) for name in names)


def _gone(work: Workspace, site: Site, name: str) -> bool:
    return site.frame is None and work.is_local(site, name)


def _by_name(work: Workspace, site: Site, name: str) -> Iterator[tuple[float, str]]:
    """Locals of a function that is no longer running: told by their name and their use."""
    if name in ("device", "dev", "DEVICE", "target_device", "map_location") and work.finding.target is not None:
        if not _followed_already(work, site, name):
            yield _BY_NAME[0], name
        return
    if name == work.self_name(site):
        live = _self_of(work, site)
        if live is not None:
            yield from _of_module(work, name, live)
            yield from _of_object(work, name, live)
        return
    stray, other = work.finding.stray, work.finding.other
    if stray is not None and stray.site.source is site.source and stray.expression == name:
        return
    if other is not None and not other.known and other.expression == name and _beside(work, site, other.site):
        # Told from a text: nothing lives, and this is what the stray met.
        yield _BY_NAME[1], f"next({name}.parameters()).device" if other.kind == "module" else f"{name}.device"
        return
    function = next(iter(work.functions(site.source, site.node)), None)
    if function is None or not work.available(site, name) or _is_array(function, name):
        return
    if name in brought_home(function, work.finding.target):
        return
    for asked in _attributes_by_name(function).get(name, ()):
        if asked == "device":
            yield _BY_NAME[1], f"{name}.device"
        elif asked in ("detach", "new_zeros", "new_ones", "new_full", "new_tensor", "requires_grad"):
            yield _BY_NAME[2], f"{name}.device"
        elif asked in ("shape", "size", "dtype"):
            yield _BY_NAME[3], f"{name}.device"


@once_a_node
def _attributes_by_name(function: ast.AST) -> dict[str, list[str]]:
    """What the function asks of each name: ``x.shape``."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, []).append(node.attr)
    return found


def _is_array(function: ast.AST, name: str) -> bool:
    """Is the name bound to what numpy makes? It has a shape, and no device of torch's."""
    return name in _arrays(function)


@once_a_node
def _arrays(function: ast.AST) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            calls = [n for n in ast.walk(node.value) if isinstance(n, ast.Call)]
            if any(last_name(c.func) in ("numpy", "tolist") or root(c.func) in ("np", "numpy") for c in calls):
                found |= bound_by(node)
    return frozenset(found)


def _followed_already(work: Workspace, site: Site, name: str) -> bool:
    """Is all that the function around makes or moves told to follow this name already, so that the stray did too?"""
    function = next(iter(work.functions(site.source, site.node)), None)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or not _has_default(function, name):
        return False  # the caller has said it
    scope = Scope({}, work.globals_of(site))
    followed = False
    for call in ast.walk(function):
        said = list(_named_devices(call))
        followed = followed or any(isinstance(code, ast.Name) and code.id == name for code in said)
        if isinstance(call, ast.Call) and not said and call_name(call, scope) in FACTORIES:
            return False
    return followed


def _has_default(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    args = function.args
    named = [a.arg for a in (*args.posonlyargs, *args.args)]
    optional = named[len(named) - len(args.defaults) :]
    optional += [a.arg for a, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default is not None]
    return name in optional


def _beside(work: Workspace, site: Site, other: Site | None) -> bool:
    """Are both in the same function of the same text, so that a name means the same thing?"""
    if other is None or other.source is not site.source:
        return False
    functions = [next(iter(work.functions(site.source, place.node)), None) for place in (site, other)]
    return functions[0] is functions[1]


def _self_of(work: Workspace, site: Site) -> Any:
    """The live object that `self` was, where the stray's owner is of the class around the node."""
    class_node = site.source.class_of(site.node)
    stray = work.finding.stray
    owner = stray.owner if stray is not None else None
    if class_node is not None and owner is not None and type(owner).__name__ == class_node.name:
        return owner
    if class_node is None:
        return None
    alike = [
        live
        for name, live in list(work.finding.namespace.items())
        if not name.startswith("_") and any(cls.__name__ == class_node.name for cls in type(live).__mro__)
    ]
    return alike[0] if len({id(live) for live in alike}) == 1 else None


def _of_module(work: Workspace, name: str, live: Any) -> Iterator[tuple[float, str]]:
    if not placement.is_module(live):
        return
    yield from _of_object(work, name, live)
    if work.finding.target is None or placement.devices_of(live) != (work.finding.target,):
        held = [m for m in placement.members(live) if m.via == "parameter"]
        first = next((m for m in held if _on_target(work, m.value)), None)
        if first is not None:
            yield 5, f"{name}{first.path}.device"
        return
    own = [m for m in placement.members(live) if m.via == "parameter"]
    if own:
        yield 5, f"{name}{own[0].path}.device"
    elif any(found.via == "parameter" for found in placement.walk(live)):
        yield 7, f"next({name}.parameters()).device"


def _of_object(work: Workspace, name: str, live: Any) -> Iterator[tuple[float, str]]:
    """``args.device``, ``self.device``, ``accelerator.device``."""
    if is_target(work, attribute(live, "device")):
        yield 2.5, f"{name}.device"
        return
    for cls in type(live).__mro__:
        package = str(cls.__dict__.get("__module__", "")).split(".")[0]
        if package in _DEVICE_PROPERTY and "device" in cls.__dict__:
            yield 3, f"{name}.device"
            return


def _is_stray(work: Workspace, live: Any) -> bool:
    stray = work.finding.stray
    return stray is not None and stray.known and stray.value is live


def _starts_otherwise(work: Workspace, site: Site, name: str) -> bool:
    """Is the name bound to a number, list or None as well, as the ``total = 0`` before a loop, which has no device?"""
    return name in _no_tensors(next(iter(work.functions(site.source, site.node)), site.source.tree))


@once_a_node
def _no_tensors(area: ast.AST) -> frozenset[str]:
    """The names that are bound to what is no tensor."""
    found: set[str] = set()
    for node in ast.walk(area):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts, strict=False)
                    first = {t.id: v for t, v in list(pairs)[::-1] if isinstance(t, ast.Name)}
                    found |= {name for name, v in first.items() if isinstance(v, _NO_TENSOR)}
                elif isinstance(node.value, _NO_TENSOR):
                    found |= bound_by(node)
    return frozenset(found)


_NO_TENSOR = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp)


def _moved_later(work: Workspace, site: Site, name: str) -> bool:
    """Was the name moved between the place of the edit and the failure, so that its device was another before?"""
    area = next(iter(work.functions(site.source, site.node)), site.source.tree)
    return _last_moves(area).get(name, -1) >= getattr(site.node, "lineno", 0)


@once_a_node
def _last_moves(area: ast.AST) -> dict[str, int]:
    """The last line on which each name is bound to what was moved."""
    found: dict[str, int] = {}
    for node in ast.walk(area):
        if isinstance(node, ast.Assign) and any(
            last_name(call.func) in ("to", "cuda", "cpu") for call in ast.walk(node) if isinstance(call, ast.Call)
        ):
            found.update({name: max(node.lineno, found.get(name, 0)) for name in bound_by(node)})
    return found

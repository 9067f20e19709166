"""Weights that a file has under other names: ``load_state_dict(..., strict=False)`` has left them on meta."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import is_of
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.phrases import listed
from ipydevice.language import say

# What TensorFlow calls the parts of a normalising layer; transformers renames them as it loads.
_OF_TENSORFLOW = {
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}


def other_keys(ctx: Context) -> Iterator[Proposal]:
    """The keys are renamed as they are loaded, where what the file has and what the model lacks can be matched."""
    for name, module in list(ctx.finding.namespace.items()):
        if name.startswith("_") or not placement.is_module(module):
            continue
        held = _tensors(module)
        missing = {key for key, live in held.items() if placement.device_of(live) == "meta"}
        if not missing:
            continue
        for source, call in _lenient_loads(ctx):
            given = call.args[0]
            said, certain = _renamed(ctx, Site(source, given), held, missing)
            if said is None:
                continue
            draft = ctx.draft(source)
            draft.replace(given, f"{{{said}: v for k, v in {draft.segment(given)}.items()}}")
            if not any(keyword.arg == "assign" for keyword in call.keywords):
                draft.keyword(call, "assign", "True")  # on meta there is nothing to copy into
            left = listed(sorted(missing)[:3])
            if len(missing) > 3:
                left = say("{names} and others", names=left)
            yield Proposal(
                say("rename the keys that {name} has under other names, as they are loaded", name=name),
                [draft],
                note=say("strict=False has left out {names}", names=left),
                certain=certain,
            )
            return


def _tensors(module: Any, prefix: str = "", depth: int = 8) -> dict[str, Any]:
    """The parameters and buffers of a module by their names in its state dict."""
    found: dict[str, Any] = {}
    for member in placement.members(module):
        name = prefix + member.path.lstrip(".").strip("[]'\"")
        if member.via in ("parameter", "buffer"):
            found[name] = member.value
        elif member.via == "module" and depth:
            found |= _tensors(member.value, f"{name}.", depth - 1)
    return found


def _lenient_loads(ctx: Context) -> Iterator[tuple[Source, ast.Call]]:
    """The calls of ``load_state_dict`` that leave out what does not fit."""
    for source in classes.sources(ctx):
        for node in source.nodes:
            match node:
                case ast.Call(func=ast.Attribute(attr="load_state_dict"), args=[_, *_], keywords=keywords):
                    lenient = (k for k in keywords if k.arg == "strict" and isinstance(k.value, ast.Constant))
                    if any(k.value.value is False for k in lenient):  # type: ignore[attr-defined]
                        yield source, node


def _renamed(ctx: Context, given: Site, held: dict[str, Any], missing: set[str]) -> tuple[str | None, bool]:
    """(code for the new key of ``k``, are the keys of what is loaded known)."""
    loaded = ctx.value(given)
    if is_of(loaded, dict):
        return _matched({k: v for k, v in dict.items(loaded) if type(k) is str}, held, missing), True
    kept = [one for name, live in list(ctx.finding.namespace.items()) if name[:1] != "_" for one in _state_dicts(live)]
    found = {code for one in kept if (code := _matched(one, held, missing)) is not None}
    if len(found) == 1:
        return found.pop(), False
    words = {
        word
        for source in classes.sources(ctx)
        for node in source.nodes
        if isinstance(node, ast.Constant) and type(node.value) is str
        for word in node.value.split(".")
    }
    renamed = {old: new for old, new in _OF_TENSORFLOW.items() if old in words}
    covered = all(key.rpartition(".")[2] in renamed.values() for key in missing)
    return (_suffixes(renamed) if renamed and covered else None), False


def _state_dicts(live: Any, depth: int = 3) -> Iterator[dict[str, Any]]:
    """The dicts of tensors by name in a value of the workspace."""
    if not is_of(live, dict) or not depth:
        return
    held = dict(dict.items(live))
    if held and all(type(key) is str and placement.is_tensor(one) for key, one in held.items()):
        yield held
    for inner in held.values():
        yield from _state_dicts(inner, depth - 1)


def _matched(keys: dict[str, Any], held: dict[str, Any], missing: set[str]) -> str | None:
    """By a prefix that is too much or lacks, else by the last part of each name."""
    extra = [key for key in keys if key not in held]
    for long, short in ((one, name) for one in extra for name in missing if one.endswith(f".{name}")):
        prefix = long.removesuffix(short)
        if all(f"{prefix}{name}" in keys for name in missing):
            return f'k.removeprefix("{prefix}")'
    for short, long in ((one, name) for one in extra for name in missing if name.endswith(f".{one}")):
        prefix = long.removesuffix(short)
        if len(extra) == len(keys) and all(name.removeprefix(prefix) in keys for name in missing):
            return f'f"{prefix}{{k}}"'
    renamed: dict[str, str] = {}
    for name in sorted(missing):
        parent, _, last = name.rpartition(".")
        there = [key for key in extra if key.rpartition(".")[0] == parent and _same_shape(keys[key], held[name])]
        known = [key for key in there if _OF_TENSORFLOW.get(key.rpartition(".")[2]) == last]
        found = known or there
        if len(found) != 1 or renamed.setdefault(found[0].rpartition(".")[2], last) != last:
            return None
    return _suffixes(renamed) if renamed else None


def _same_shape(one: Any, other: Any) -> bool:
    return placement.is_tensor(one) and placement.shape_of(one) == placement.shape_of(other)


def _suffixes(renamed: dict[str, str]) -> str:
    return "k" + "".join(_replaced(renamed.items()))


def _replaced(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for old, new in pairs:
        yield f'.replace(".{old}", ".{new}")'

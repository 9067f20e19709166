"""Data sets and collate functions that make accelerator tensors: host tensors, moved by the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType

from ipydevice.diagnose.evaluate import attribute
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes import classes
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.generators import drawing_calls
from ipydevice.fixes.names import last_name
from ipydevice.fixes.phrases import listed, move_all
from ipydevice.language import say


def host_dataset(ctx: Context) -> Iterator[Proposal]:
    """A Dataset and its collate function give host tensors; the loop moves them."""
    for source in classes.sources(ctx):
        for getter in _getters(source):
            draft = ctx.draft(source)
            if not _without_moves(draft, getter):
                continue
            drafts = {source: draft}
            moved = [name for name in _move_in_loops(ctx, drafts, source, getter) if name]
            title = say("let the data set give host tensors")
            if moved:
                names = listed(list(dict.fromkeys(moved)))
                title = say("let the data set give host tensors and move {names} in the loop", names=names)
            yield Proposal(title, list(drafts.values()), note=say("the loop moves them, with pin_memory at no cost"))
            return


def unpinned(ctx: Context) -> Iterator[Proposal]:
    """Only host memory can be pinned: a loader over accelerator tensors does without."""
    if ctx.finding.mismatch.family != "pin":
        return
    for source in classes.sources(ctx):
        for call in (node for node in source.nodes if isinstance(node, ast.Call)):
            for keyword in call.keywords:
                if (
                    keyword.arg == "pin_memory"
                    and isinstance(keyword.value, ast.Constant)
                    and keyword.value.value is True
                ):
                    draft = ctx.draft(source)
                    draft.replace(keyword.value, "False")
                    note = say("its tensors are on the accelerator already: there is nothing to pin")
                    yield Proposal(say("build the loader without pinned memory"), [draft], note=note)
                    return


def without_workers(ctx: Context) -> Iterator[Proposal]:
    """What is on the card is read in this process: a forked worker cannot use it."""
    if "DataLoader" not in (ctx.finding.mismatch.wrapped_in or "") and "fork" not in ctx.finding.mismatch.text:
        return
    for name, site, call in drawing_calls(ctx):
        said = {keyword.arg: keyword.value for keyword in call.keywords}
        if last_name(call.func) != "DataLoader" or "num_workers" not in said or None in said:
            continue
        draft = ctx.draft(site.source)
        for option, off in _OF_WORKERS.items():
            if option in said and ast.unparse(said[option]) != off:
                draft.replace(said[option], off)
        yield Proposal(
            say("let {name} read in this process, without workers", name=name),
            [draft],
            note=say("a worker cannot read what is on the card, but host tensors, which the loop would then move"),
        )
        return


# What a loader without workers, of tensors that are on the card, takes no more.
_OF_WORKERS = {
    "num_workers": "0",
    "persistent_workers": "False",
    "prefetch_factor": "None",
    "multiprocessing_context": "None",
    "timeout": "0",
    "pin_memory": "False",
}


def pinned_on_the_host(ctx: Context) -> Iterator[Proposal]:
    """``x.pin_memory()`` where x is on the host and there is an accelerator; what is there needs none."""
    failed = ctx.finding.failed
    for call in ast.walk(failed.node) if ctx.finding.mismatch.family == "pin" else ():
        if not (isinstance(call, ast.Call) and last_name(call.func) == "pin_memory"):
            continue
        function = call.func
        text = failed.source.segment(function.value) if isinstance(function, ast.Attribute) else ""
        kind = (ctx.stray.device if ctx.stray is not None else "cuda").partition(":")[0]
        asked = ctx.work.torch_name(failed, f"{kind}.is_available")
        if not text.replace(".", "_").isidentifier() or asked is None:
            continue  # what is called would be called twice
        draft = ctx.draft(failed.source)
        draft.wrap(call, "(", f" if {text}.is_cpu and {asked}() else {text})")
        title = say("pin {name} only where it is on the host", name=text)
        yield Proposal(title, [draft], note=say("what is on the card needs no pinning"))
        return


def _getters(source: Source) -> Iterator[ast.FunctionDef]:
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and ("collate" in node.name or node.name == "__getitem__"):
            yield node


def _without_moves(draft: Draft, area: ast.AST) -> bool:
    done = False
    for node in ast.walk(area):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
            draft.replace(node, draft.segment(node.func.value))
            done = True
        for keyword in node.keywords:
            if keyword.arg == "device":
                draft.replace(keyword.value, '"cpu"')
                done = True
    return done


def _move_in_loops(ctx: Context, drafts: dict[Source, Draft], source: Source, getter: ast.FunctionDef) -> Iterator[str]:
    """In each loop over such a loader that moves nothing, what the data set moved itself until now; the names."""
    for place in classes.sources(ctx):
        for loop in ast.walk(place.tree):
            if not (isinstance(loop, (ast.For, ast.AsyncFor)) and _loads(ctx, place, loop, source, getter)):
                continue
            if any(isinstance(n, ast.Call) and last_name(n.func) in ("to", "cuda") for n in ast.walk(loop)):
                continue
            names = _moved_names(getter, loop)
            device = ctx.device(Site(place, loop.body[0]), avoid=names) if names else None
            if device is not None:
                draft = drafts.setdefault(place, ctx.draft(place))
                draft.top_of(loop.body, move_all(names, [f"{name}.to({device})" for name in names]))
                yield from names


def _loads(ctx: Context, place: Source, loop: ast.For | ast.AsyncFor, source: Source, getter: ast.FunctionDef) -> bool:
    """Is the loop's iterable a loader of this data set, or with this collate function?"""
    iterable: ast.AST = loop.iter
    while (
        isinstance(iterable, ast.Call) and last_name(iterable.func) in ("enumerate", "tqdm", "iter") and iterable.args
    ):
        iterable = iterable.args[0]
    class_node = source.class_of(getter) if getter.name == "__getitem__" else None
    wanted = class_node.name if class_node is not None else getter.name
    for node in ast.walk(iterable):  # a loader's name, or "DataLoader(Points(), collate_fn=collate)" on the spot
        if not isinstance(node, ast.Name):
            continue
        live = ctx.value(Site(place, node))
        held = (live, attribute(live, "dataset"))
        if (
            node.id == wanted
            or any(cls.__name__ == wanted for one in held for cls in type(one).__mro__)
            or _is_function(attribute(live, "collate_fn"), wanted)
        ):
            return True
    return False


def _is_function(live: object, name: str) -> bool:
    return isinstance(live, FunctionType) and live.__name__ == name


def _moved_names(getter: ast.FunctionDef, loop: ast.For | ast.AsyncFor) -> list[str]:
    """The loop's names for what the data set has moved: all of its one value, or those parts of its tuple."""
    target: ast.AST = loop.target
    if isinstance(loop.iter, ast.Call) and last_name(loop.iter.func) == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[-1]
    returned = [n.value for n in ast.walk(getter) if isinstance(n, ast.Return) and n.value is not None]
    if len(returned) != 1:
        return []
    value = returned[0]
    if isinstance(target, ast.Name):
        return [target.id] if not isinstance(value, (ast.Tuple, ast.List, ast.Dict, ast.DictComp)) else []
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)):
        return []
    pairs = zip(target.elts, value.elts, strict=True)
    return [t.id for t, v in pairs if isinstance(t, ast.Name) and _is_moved(getter, v)]


def _is_moved(getter: ast.FunctionDef, value: ast.expr) -> bool:
    """Does this part of what is returned say a device, itself or where its name was bound?"""
    made: list[ast.AST] = [value]
    if isinstance(value, ast.Name):
        for node in ast.walk(getter):
            if isinstance(node, ast.Assign) and any(
                isinstance(n, ast.Name) and n.id == value.id for target in node.targets for n in ast.walk(target)
            ):
                made.append(node.value)
    calls = [n for part in made for n in ast.walk(part) if isinstance(n, ast.Call)]
    return any(last_name(c.func) in ("to", "cuda") or any(k.arg == "device" for k in c.keywords) for c in calls)

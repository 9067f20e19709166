"""What the host wants: arrays, lengths, indices into host tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from ipydevice import placement
from ipydevice.diagnose.evaluate import MISSING, is_of
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.infer import call_name
from ipydevice.fixes import moves, results, uses
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.names import last_name, root
from ipydevice.fixes.operands import HOST_ROOTS, wanted_on_host
from ipydevice.fixes.phrases import listed
from ipydevice.fixes.seams import at_the_seam
from ipydevice.language import Sentence, say
from ipydevice.placement.tensors import read


def to_numpy(ctx: Context) -> Iterator[Proposal]:
    """``x.detach().cpu()`` where numpy, a plot or a host library takes it."""
    stray = ctx.stray
    if stray is None or not isinstance(stray.site.node, ast.expr):
        return
    draft = ctx.draft(stray.site.source)
    node = _past_detach(stray.site.source, stray.site.node)
    live = ctx.value(stray.site)
    if type(live) in (list, tuple) and stray.member:
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return
        opening, closing = ("[", "]") if type(live) is list else ("tuple(", ")")
        draft.replace(node, f"{opening}{_item_for_the_host(ctx, live)} for t in {draft.segment(node)}{closing}")
    elif live is MISSING and results.lacks(ctx, stray.site, node, "detach"):  # a list, as the text shows
        draft.replace(node, f"[t.detach().cpu() for t in {draft.segment(node)}]")
    else:
        _to_host(draft, node, live if not stray.member else stray.value)
    for other in _others_for_the_host(ctx, stray.site, node):
        _to_host(draft, _past_detach(stray.site.source, other), ctx.value(_at(stray.site, other)))
    name = stray.site.source.segment(stray.site.node)
    yield Proposal(say("bring {name} to the host there", name=name), [draft])
    kept = _kept_on_host(ctx)
    if kept is not None:
        yield kept


def _item_for_the_host(ctx: Context, live: Sequence[Any]) -> str:
    """What each item ``t`` of a list becomes for the host; beside numbers a tensor of one element becomes a number."""
    beside = [item for held in _lists_beside(ctx, live) for item in held]
    every = [*live, *beside]
    tensors = [item for item in every if placement.is_tensor(item)]
    if len(tensors) == len(every):
        return "t.detach().cpu()"
    if all(type(item) in (int, float) or _is_one_float(item) for item in every):
        return "float(t)"
    known = ctx.work.torch_name(ctx.finding.failed, "is_tensor")
    return f"t.detach().cpu() if {known}(t) else t" if known else 't.detach().cpu() if hasattr(t, "detach") else t'


def _is_one_float(item: object) -> bool:
    if not placement.is_tensor(item):
        return False
    dtype = placement.dtype_of(item)
    return all(size == 1 for size in placement.shape_of(item) or ()) and dtype is not None and "float" in dtype


def _lists_beside(ctx: Context, live: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The other lists of a dict out of which the code takes one by a name: ``values = self.log[key]``."""
    for step in ctx.chain[:2]:
        for node in ast.walk(step.value) if step.value is not None else ():
            if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
                held = ctx.value(Site(step.site.source, node.value, step.site.frame))
                if is_of(held, dict) and any(one is live for one in dict.values(held)):
                    yield from (one for one in dict.values(held) if type(one) is type(live))


def _at(site: Site, node: ast.AST) -> Site:
    return Site(site.source, node, site.frame)


def _past_detach(source, node: ast.expr) -> ast.expr:  # type: ignore[no-untyped-def]
    """``x.detach()`` for the ``x`` in it."""
    parent = source.parent(node)
    call = source.parent(parent) if isinstance(parent, ast.Attribute) and parent.attr == "detach" else None
    return call if isinstance(call, ast.Call) else node


def _to_host(draft: Draft, node: ast.expr, live: object) -> None:
    detached = isinstance(node, ast.Call) and last_name(node.func) == "detach"
    free = placement.is_tensor(live) and read(live, "requires_grad") is False
    draft.suffix(node, ".cpu()" if detached or free else ".detach().cpu()")


def _others_for_the_host(ctx: Context, site: Site, node: ast.expr) -> Iterator[ast.expr]:
    """Other accelerator tensors that the same call and the following statements give to host libraries."""
    statement = site.source.statement(node)
    parent = site.source.parent(statement) if statement is not None else None
    for _, block in ast.iter_fields(parent) if parent is not None else ():
        if not (isinstance(block, list) and statement in block):
            continue
        for later in block[block.index(statement) :]:
            for call in ast.walk(later):
                if isinstance(call, ast.Call):
                    yield from _given_to_host(ctx, site, call, node)


def _given_to_host(ctx: Context, site: Site, call: ast.Call, node: ast.expr) -> Iterator[ast.expr]:
    mine = set(map(id, ast.walk(node)))
    if isinstance(call.func, ast.Attribute) and call.func.attr == "numpy" and not call.args:
        given = [call.func.value]
    elif root(call.func) in HOST_ROOTS or any(id(a) in mine for a in call.args):
        given = list(call.args)
    else:
        return
    for part in given:
        if id(part) in mine or any(child is node for child in ast.walk(part)):
            continue
        live = ctx.value(_at(site, part))
        if live is not MISSING and placement.is_tensor(live) and placement.device_of(live) != "cpu":
            yield part


def _kept_on_host(ctx: Context) -> Proposal | None:
    """A list that collects tensors collects host ones."""
    for step in ctx.chain:
        node = step.site.node
        call = next((n for n in ast.walk(node) if isinstance(n, ast.Call) and last_name(n.func) == "append"), None)
        if step.how == "item" and call is not None and len(call.args) == 1:
            draft = ctx.draft(step.site.source)
            value = call.args[0]
            detached = isinstance(value, ast.Call) and last_name(value.func) == "detach"
            draft.suffix(value, ".cpu()" if detached else ".detach().cpu()")
            return Proposal(say("collect host tensors"), [draft], note=say("waits for the accelerator on each step"))
    return None


def must_be_cpu(ctx: Context) -> Iterator[Proposal]:
    """``lengths.cpu()`` in the call that asks for it."""
    stray = ctx.stray
    lengths = _lengths(ctx)
    if lengths is not None:
        draft = ctx.draft(lengths.source)
        assert isinstance(lengths.node, ast.expr)
        draft.suffix(lengths.node, ".cpu()")
        yield Proposal(say("bring {name} to the host in this call", name=lengths.source.segment(lengths.node)), [draft])
    if lengths is None:
        yield from _numbers_in_the_call(ctx)
    given = _given_there(ctx)
    if lengths is None and given is not None:
        draft = ctx.draft(given.source)
        assert isinstance(given.node, ast.expr)
        parts = [given.node, *_states_beside(given)]
        for part in parts:
            if last_name(getattr(given.source.parent(part), "func", part)) == "set_rng_state_all":
                draft.replace(part, f"[one.cpu() for one in {draft.segment(part)}]")
            else:
                draft.suffix(part, ".cpu()")
        texts = [given.source.segment(part) for part in parts]
        names = listed(list(dict.fromkeys(texts)))
        one = len(texts) == 1
        said: Sentence = "bring {name} to the host in this call" if one else "bring {name} to the host in these calls"
        yield Proposal(say(said, name=names), [draft])
    if stray is not None and stray.member:
        yield from _loaded_to_the_host(ctx)
        return
    if stray is None or not isinstance(stray.site.node, ast.expr):
        return
    for step in reversed(ctx.chain):
        made = moves.where_made(ctx, step)
        if made is not None:
            yield made
            return


def _given_there(ctx: Context) -> Site | None:
    """The stray as the call that failed is given it: ``rng["torch"]``, also where it came out of a larger object."""
    stray, taken, failed = ctx.stray, ctx.finding.taken, ctx.finding.failed
    if stray is None:
        return None
    if not stray.member and isinstance(stray.site.node, ast.expr):
        return stray.site
    if taken is not None and taken.site is not None and isinstance(taken.site.node, ast.expr):
        live = ctx.value(taken.site)
        if placement.is_tensor(live) and placement.device_of(live) == stray.device:
            return taken.site
    for call in ast.walk(failed.node):
        for part in (*call.args, *(k.value for k in call.keywords)) if isinstance(call, ast.Call) else ():
            if ctx.value(_at(failed, part)) is stray.value:
                return _at(failed, part)
    return None


_SETTERS = ("set_rng_state", "set_state", "set_rng_state_all")


def _states_beside(given: Site) -> Iterator[ast.expr]:
    """What the calls beside are given that set states of generators, too: all of them want the host."""
    source = given.source
    call = source.parent(given.node)
    if not (isinstance(call, ast.Call) and last_name(call.func) in _SETTERS):
        return
    for other in ast.walk(source.function(call) or source.tree):
        if isinstance(other, ast.Call) and other is not call and last_name(other.func) in _SETTERS and other.args:
            made = isinstance(other.args[0], ast.Call)  # get_rng_state(), x.cpu()
            if root(other.func) not in HOST_ROOTS and not made:
                yield other.args[0]


def _loaded_to_the_host(ctx: Context) -> Iterator[Proposal]:
    """``torch.load(path, map_location="cpu")`` for a file of which a part has to stay on the host."""
    for step in ctx.chain:
        value = step.value
        if (
            step.how == "assignment"
            and isinstance(value, ast.Call)
            and call_name(value, ctx.scope(step.site)) == "load"
        ):
            draft = ctx.draft(step.site.source)
            draft.keyword(value, "map_location", '"cpu"')
            note = say(
                "load_state_dict() copies to the parameters' device; what else is used on the card has to be moved"
            )
            yield Proposal(say("load the file to the host"), [draft], note=note)
            return


def _numbers_in_the_call(ctx: Context) -> Iterator[Proposal]:
    """``torch.tensor_split(x, cuts.cpu())``: of the failing call's tensors the one of whole numbers, beside others."""
    failed, stray = ctx.finding.failed, ctx.stray
    for call in ast.walk(failed.node):
        if not isinstance(call, ast.Call) or len(call.args) + len(call.keywords) < 2:
            continue
        parts = [*call.args[1:], *(k.value for k in call.keywords)]
        lives = [(part, ctx.value(_at(failed, part))) for part in parts]
        whole = [p for p, live in lives if placement.is_tensor(live) and placement.dtype_of(live) in ("int64", "int32")]
        here = [
            p for p in whole if stray is not None and placement.device_of(ctx.value(_at(failed, p))) == stray.device
        ]
        if len(here) == 1:
            draft = ctx.draft(failed.source)
            draft.suffix(here[0], ".cpu()")
            yield Proposal(say("bring {name} to the host in this call", name=failed.source.segment(here[0])), [draft])
            return


def _lengths(ctx: Context) -> Site | None:
    """The argument of pack_padded_sequence that has to be on the host."""
    failed = ctx.finding.failed
    if ctx.finding.mismatch.host_required not in ("lengths", None):
        return None
    for node in ast.walk(failed.node):
        if isinstance(node, ast.Call) and last_name(node.func) == "pack_padded_sequence":
            named = next((k.value for k in node.keywords if k.arg == "lengths"), None)
            found = named or (node.args[1] if len(node.args) > 1 else None)
            return None if found is None else Site(failed.source, found, failed.frame)
    return None


def index_device(ctx: Context) -> Iterator[Proposal]:
    """The index goes where the indexed tensor is."""
    seam = next(at_the_seam(ctx), None)
    if seam is not None:  # moved as a whole it would be right for one card only
        yield seam
        return
    used = uses.where_used(ctx)
    if used is not None:
        yield used
    for step in ctx.chain[:2]:
        made = moves.where_made(ctx, step)
        if made is not None:
            yield made


def index_into_host_data(ctx: Context) -> Iterator[Proposal]:
    """``bank[idx.to(bank.device)]`` where the cells also give ``bank`` to numpy or a loader: it stays on the host."""
    stray = ctx.stray
    if stray is None or not isinstance(stray.site.node, ast.Name) or stray.device != "cpu":
        return
    name, source = stray.site.node.id, stray.site.source
    parent = source.parent(stray.site.node)
    if not isinstance(parent, ast.Subscript) or parent.value is not stray.site.node or not wanted_on_host(ctx, name):
        return
    live = ctx.value(_at(stray.site, parent.slice))
    if placement.is_tensor(live) and placement.device_of(live) == ctx.target:
        draft = ctx.draft(source)
        draft.suffix(parent.slice, f".to({name}.device)")
        yield Proposal(
            say("move {index} where {name} is", index=source.segment(parent.slice), name=name),
            [draft],
            note=say("{name} is used on the host", name=name),
        )

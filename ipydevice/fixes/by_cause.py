"""Which repairs suit which cause, the best first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ipydevice import placement
from ipydevice.fixes import (
    absent,
    attributes,
    batches,
    bindings,
    containers,
    datasets,
    defaults,
    derived,
    first_card,
    generators,
    host,
    kept_home,
    kept_modules,
    late,
    layers,
    literals,
    meta,
    misnamed,
    modules,
    movers,
    moves,
    objects,
    optimizers,
    ordinals,
    origins,
    processes,
    recorded,
    renamed,
    replicas,
    resets,
    seams,
    shards,
    siblings,
    states,
    uses,
    written_back,
)
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.names import root
from ipydevice.placement.tensors import read

Repairs = Callable[[Context], Iterator[Proposal]]


def _one(proposal: Proposal | None) -> Iterator[Proposal]:
    if proposal is not None:
        yield proposal


def left_behind(ctx: Context) -> Iterator[Proposal]:
    """A value that was never moved: in the loop that hands it out, where it is fresh, or where it is used."""
    if ctx.stray is not None and ctx.stray.kind == "loader":
        return  # it has no .to()
    again = uses.where_used(ctx) if uses.bound_again(ctx) else None
    if again is not None:  # whatever is done to the first value, the loop brings the next
        yield again
        return
    for step in ctx.chain:
        if step.how == "loop":
            yield from _one(batches.container_in_loop(ctx, step) or moves.in_loop(ctx, step))
            break
        if step.how == "argument":
            yield from _one(moves.beside_other_arguments(ctx))
    yield from _one(moves.beside_unpacked(ctx))
    yield from host.index_into_host_data(ctx)
    if any(objects.is_frozen(owner) for owner, _ in attributes.owners(ctx)):  # nothing of it can be set
        yield from _one(objects.built_on_device(ctx))
    near = origins.near(ctx)
    if near is not None:
        yield from _one(moves.where_made(ctx, near))
    elif _learns(ctx):
        yield from _origins(ctx)
    passed = [step for step in ctx.chain if step.how == "argument"]
    if passed:
        yield from _one(moves.where_passed(ctx, passed[-1]))
    yield from _one(uses.where_used(ctx))
    if near is None:
        yield from _origins(ctx)


def _learns(ctx: Context) -> bool:
    """Is it a tensor with gradients of its own, of which every use must see the same?"""
    stray = ctx.stray
    return stray is not None and placement.is_tensor(stray.value) and read(stray.value, "requires_grad") is True


def _origins(ctx: Context) -> Iterator[Proposal]:
    for step in reversed(ctx.chain):
        if step.how in ("assignment", "expression", "item", "return", "attribute"):
            yield from _one(moves.where_made(ctx, step))


def fresh_tensor(ctx: Context) -> Iterator[Proposal]:
    """``device=`` in the call that makes it."""
    again = uses.where_used(ctx) if uses.bound_again(ctx) else None
    if again is not None:
        yield again
        return
    yield from _one(moves.beside_unpacked(ctx))
    near = origins.near(ctx)
    if near is not None:
        yield from _one(moves.where_made(ctx, near))
    yield from _one(uses.where_used(ctx))
    yield from _origins(ctx)


def constant(ctx: Context) -> Iterator[Proposal]:
    """A constant caught by a hook or lambda: made on the device, or moved inside."""
    yield from fresh_tensor(ctx)


def loaded(ctx: Context) -> Iterator[Proposal]:
    """What came from a file is moved when it is taken out."""
    for step in ctx.chain:
        if step.how in ("assignment", "item", "attribute"):
            yield from _one(moves.where_made(ctx, step))
    yield from modules.module_left_behind(ctx)
    yield from _one(uses.where_used(ctx))


def left_model(ctx: Context) -> Iterator[Proposal]:
    """A module that was never moved, or a tensor that ``.to()`` does not reach: in an object that is none, or plain."""
    stray = ctx.stray
    plain = stray is not None and stray.via == "attribute" and placement.is_tensor(stray.value)
    if stray is not None and (plain or not _has_module(ctx)):
        yield from late.whole_again(ctx)
        yield from attributes.plain_attribute(ctx)
        yield from _named(ctx)
        yield from left_behind(ctx)
        return
    yield from containers.registered(ctx)
    moved = list(modules.module_left_behind(ctx))
    outside = [proposal for proposal in moved if not _in_a_class(proposal)]
    again = [] if _any_edit(outside) else list(late.whole_again(ctx))
    yield from again
    yield from outside if again else moved
    yield from kept_modules.kept_in_an_object(ctx)
    yield from _named(ctx)


def kept_tensor(ctx: Context) -> Iterator[Proposal]:
    """A tensor that an object keeps; where it was one of several that built the object, none of them alone will do."""
    yield from attributes.plain_attribute(ctx)
    if objects.built_on_device(ctx) is None:
        yield from _named(ctx)
        yield from left_behind(ctx)


def _named(ctx: Context) -> Iterator[Proposal]:
    """Where the stray's own name in the workspace is bound."""
    for step in bindings.of_path(ctx):
        yield from _one(moves.where_made(ctx, step))


def _has_module(ctx: Context) -> bool:
    stray = ctx.stray
    return stray is not None and (placement.is_module(stray.value) or placement.is_module(stray.owner))


def framework_moved(ctx: Context) -> Iterator[Proposal]:
    """The framework moves the model as it likes: move it before it is used again."""
    yield from _one(modules.above_the_use(ctx))
    yield from modules.module_left_behind(ctx)


def shadow(ctx: Context) -> Iterator[Proposal]:
    """An averaged copy: a module, or tensors in an object."""
    if _has_module(ctx) and ctx.stray is not None and ctx.stray.via != "attribute":
        if not placement.is_module(ctx.stray.value):  # one of its parameters, met in a loop
            yield from _one(modules.above_the_use(ctx))
        yield from modules.module_left_behind(ctx)
    yield from attributes.plain_attribute(ctx)
    yield from left_behind(ctx)


def state(ctx: Context) -> Iterator[Proposal]:
    """A hidden state, kept on an object or made on the spot."""
    yield from states.kept_state(ctx)
    if not list(attributes.owners(ctx)):
        near = origins.near(ctx)
        if near is not None:
            yield from _one(moves.where_made(ctx, near))
        yield from origins.made_by_functions(ctx)
    yield from left_behind(ctx)


def taken_from_elsewhere(ctx: Context) -> Iterator[Proposal]:
    """From a library, another card, a replica: moved where it is used."""
    seam = next(seams.at_the_seam(ctx), None)
    if seam is not None:  # moved as a whole it would be right for one card only
        yield seam
        return
    if _learns(ctx) and ctx.stray is not None and read(ctx.stray.value, "is_leaf") is True:
        yield from _origins(ctx)
    yield from _one(uses.where_used(ctx))
    for step in ctx.chain[:2]:
        yield from _one(moves.where_made(ctx, step))


def in_one_replica(ctx: Context) -> Iterator[Proposal]:
    """Two cards without replicas: as from elsewhere. In a replica a device by its name would be right for one only."""
    if "replica" not in (ctx.finding.mismatch.wrapped_in or ""):
        yield from taken_from_elsewhere(ctx)
    elif ctx.finding.read is not None:  # of a text, whose lines do not show the method that they stand in
        yield from _one(uses.where_used(ctx))


def in_collection(ctx: Context) -> Iterator[Proposal]:
    """One item of a list: made on the device, or the whole list moved, for the next time it may be another item."""
    near = origins.near(ctx)
    if near is not None:
        yield from _one(moves.where_made(ctx, near))
    yield from batches.list_at_use(ctx)
    yield from fresh_tensor(ctx)


def missing_card(ctx: Context) -> Iterator[Proposal]:
    """A device that is not there: named otherwise where it is written, else a card that there is."""
    if misnamed.is_misnamed(ctx.finding.mismatch.text):  # whatever other cells ask of a card, they got it
        yield from misnamed.known_name(ctx)
        return
    yield from ordinals.several_cards(ctx)
    named = list(absent.no_accelerator(ctx))
    yield from named
    if not _any_edit(named):
        yield from ordinals.existing_card(ctx)


def _in_a_class(proposal: Proposal) -> bool:
    """Does it change how a class works, rather than one object?"""
    return any(draft.source.class_of(node) is not None for draft in proposal.drafts for node, _, _ in draft.said)


def _any_edit(proposals: list[Proposal]) -> bool:
    return any(proposal.drafts and all(draft.edit for draft in proposal.drafts) for proposal in proposals)


def anything(ctx: Context) -> Iterator[Proposal]:
    """Where nothing else fits: what moves the thing at its use."""
    stray = ctx.stray
    if stray is None or (root(stray.site.node) is None and not stray.known):
        return
    if ctx.finding.host_required or next(seams.at_the_seam(ctx), None) is not None:
        return  # a plain move is no answer there
    if placement.is_module(stray.value):
        yield from modules.module_left_behind(ctx)
    else:
        yield from _one(uses.where_used(ctx))
        yield from _one(uses.at_the_failing_line(ctx))


# Told by facts alone, before what the cause suggests.
WHATEVER: tuple[Repairs, ...] = (
    movers.helpers,
    written_back.written_back,
    siblings.forgotten_part,
    resets.put_back,
    late.late,
    kept_home.moved_at_the_use,
)

BY_CAUSE: dict[str, tuple[Repairs, ...]] = {
    "input_not_moved": (defaults.said_in_the_call, left_behind, batches.whole_batch),
    "label_not_moved": (defaults.said_in_the_call, left_behind, batches.whole_batch),
    "nested_batch_partly_moved": (batches.deeper, batches.whole_batch, left_behind, attributes.plain_attribute),
    "cuda_in_dataset": (datasets.host_dataset, datasets.without_workers, datasets.unpinned, left_behind),
    "fresh_tensor_no_device": (defaults.said_in_the_call, fresh_tensor),
    "plain_tensor_attribute": (states.rebuilt, kept_tensor),
    "derived_tensor_in_init": (derived.derived_in_init, left_behind),
    "module_in_plain_container": (containers.plain_container,),
    "model_not_moved": (left_model,),
    "metric_state": (left_model,),
    "loss_weight": (left_model, left_behind),
    "ema_shadow": (shadow,),
    "teacher": (left_model,),
    "module_added_after_move": (left_model,),
    "module_built_in_forward": (layers.built_in_forward, left_model),
    "framework_moved_model": (framework_moved,),
    "optimizer_state": (optimizers.optimizer_state, left_behind),
    "rnn_state": (state,),
    "stale_cache": (states.stale_cache, attributes.plain_attribute),
    "to_numpy": (host.to_numpy,),
    "must_be_cpu": (datasets.pinned_on_the_host, host.must_be_cpu),
    "index_device": (host.index_device,),
    "generator_device": (generators.generator_device,),
    "hardcoded_device": (defaults.said_in_the_call, literals.hardcoded, left_behind),
    "to_result_discarded": (literals.discarded, left_behind),
    "checkpoint_location": (loaded,),
    "default_device_global": (generators.shuffled_loader, fresh_tensor, left_behind),
    "model_split_multi_gpu": (defaults.said_in_the_call, taken_from_elsewhere),
    "closure_constant": (constant, left_behind),
    "ddp_wrong_device": (processes.on_its_own_card, literals.hardcoded, left_model, left_behind),
    "traced_constant": (recorded.recorded_where_it_runs,),
    "meta_not_materialized": (renamed.other_keys, meta.not_materialized, shards.missing_shards),
    "stray_in_collection": (defaults.said_in_the_call, in_collection, left_behind),
    "library_returns_cpu": (taken_from_elsewhere,),
    "dp_replica_state": (replicas.methods_of_the_first, first_card.kept_on_the_first_card, in_one_replica),
    "no_accelerator": (missing_card,),
    "unknown": (defaults.said_in_the_call, left_behind),
}

"""Who holds the memory of each device: names, ``Out[]``, the last error, torch, everybody on the card."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from ipydevice import placement
from ipydevice.diagnosis import DeviceMemory, Fix
from ipydevice.language import clauses, say
from ipydevice.listing.survey import survey
from ipydevice.placement import FactReader

Holder = Literal["output", "error"]
Kept = Sequence[tuple[Holder, str, Any]]  # who keeps it, how it is called ("Out[3]", "x in train()"), the object

MOST_KEPT = 3_000  # objects looked at
WORTH_A_WORD = 2**20  # bytes: less is not worth a line, nor a button that frees it
CACHE_WORTH_A_WORD = 2**28
_MOST_HOLDERS = 4
# %reset leaves the last three results in IPython's list of the names that are its own (DisplayHook.flush).
_RESET = "%reset -f out\nget_ipython().user_ns_hidden.update(_='', __='', ___='')"
HOSTS = ("cpu", "meta", placement.UNKNOWN)


def memory_of(
    named: Mapping[Any, tuple[str, int]],
    tensors: Iterable[Any],
    kept: Kept,
    reader: FactReader,
    *,
    is_cut: bool = False,
) -> tuple[DeviceMemory, ...]:
    """What holds how much of each device; call it in a `placement.quiet()` block.

    Args:
        named: memory that the user's names lead to, by the identity of its storage.
        tensors: the tensors in it, whose gradients count as well.
        kept: what is held beside the names, in the order in which it is to be told.
        reader: reads facts of tensors.
        is_cut: there is more behind the names than was looked at.
    """
    cut: set[str] = {"named"} if is_cut else set()
    beside = list(_with_tensors(kept, cut))
    if not beside and all(device in HOSTS for device, _ in named.values()):
        return ()
    seen = set(named)
    totals: dict[str, Counter[str]] = {"named": Counter(), "output": Counter(), "error": Counter()}
    for device, size in named.values():
        totals["named"][device] += size
    for device, identity, size in reader.held(reader.gradients(tensors)):
        if identity not in seen:
            seen.add(identity)
            totals["named"][device] += size
    largest: dict[str, Counter[str]] = {}
    for holder, name, value, kind in beside:
        found = survey("", value, kind, reader)
        if found.is_cut:
            cut.add(holder)
        for identity, (device, size) in found.memory.items():
            if identity not in seen:
                seen.add(identity)
                totals[holder][device] += size
                largest.setdefault(device, Counter())[name] += size
    devices = dict.fromkeys(device for part in totals.values() for device in part)
    told = (
        DeviceMemory(
            device, totals["named"][device], totals["output"][device], totals["error"][device], *_of_card(device),
            tuple(largest.get(device, Counter()).most_common(_MOST_HOLDERS)), tuple(sorted(cut)),
        )
        for device in devices
    )  # fmt: skip
    return tuple(one for one in told if _is_worth_a_word(one))


def _with_tensors(kept: Kept, cut: set[str]) -> Iterator[tuple[Holder, str, Any, str]]:
    """What is kept and has a device, with its kind; each object once. Who has more than is looked at joins `cut`."""
    seen: set[int] = set()
    for holder, name, value in kept:
        if id(value) in seen or placement.is_leaf(value):
            continue
        if len(seen) >= MOST_KEPT:
            cut.add(holder)
        else:
            seen.add(id(value))
            kind = placement.kind_of(value)
            if kind is not None:
                yield holder, name, value, kind


def _is_worth_a_word(one: DeviceMemory) -> bool:
    return one.device not in HOSTS or one.output + one.error >= WORTH_A_WORD


def _of_card(device: str) -> tuple[int | None, int | None, int | None, int | None]:
    """Bytes allocated and reserved by torch here, used by all on the card, and the card's whole.

    Nothing is initialised to ask: a tensor on the card means that its context is there.
    None of these waits for the card (torch/cuda/memory.py; ``cudaMemGetInfo``).
    """
    kind, _, index = device.partition(":")
    module = getattr(sys.modules["torch"], kind, None) if kind.isidentifier() and device not in HOSTS else None
    number = int(index) if index.isdecimal() else 0
    allocated = _ask(module, "current_allocated_memory" if kind == "mps" else "memory_allocated", number, kind)
    reserved = _ask(module, "driver_allocated_memory" if kind == "mps" else "memory_reserved", number, kind)
    card = _ask(module, "mem_get_info", number, kind)
    if not isinstance(card, tuple) or len(card) != 2:
        return allocated, reserved, None, None
    free, total = card
    return allocated, reserved, total - free, total


def _ask(module: Any, name: str, number: int, kind: str) -> Any:
    question = getattr(module, name, None)
    try:
        return None if question is None else question() if kind == "mps" else question(number)
    except Exception:  # noqa: BLE001 (drivers refuse with errors of their own)
        return None


def ways_to_free(memory: Iterable[DeviceMemory]) -> Iterator[Fix]:
    """Commands that give memory back, where there is some to give."""
    memory = list(memory)
    error = _listed((one.device, one.error, "error" in one.at_least) for one in memory)
    if error:
        note = say("%debug and %tb have nothing to show afterwards")
        yield Fix(
            say("Free {sizes} that the last error's frames hold", sizes=error),
            "repair",
            setup="%devicefix --forget",
            note=note,
        )
    output = _listed((one.device, one.output, "output" in one.at_least) for one in memory)
    if output:
        note = say("Out[] and _ are empty afterwards")
        yield Fix(say("Free {sizes} that Out[] and _ hold", sizes=output), "repair", setup=_RESET, note=note)
    for kind in dict.fromkeys(one.device.partition(":")[0] for one in memory):
        cached = sum(_cached(one) for one in memory if one.device.partition(":")[0] == kind)
        if cached >= CACHE_WORTH_A_WORD:
            title = say("Hand {size} of torch's cache to other programs", size=_size(cached))
            yield Fix(title, "repair", setup=f"torch.{kind}.empty_cache()", note=say("torch itself would use it again"))


def _cached(one: DeviceMemory) -> int:
    return 0 if one.reserved is None or one.allocated is None else max(0, one.reserved - one.allocated)


def _listed(held: Iterable[tuple[str, int, bool]]) -> str:
    return clauses(
        say("at least {size} on {device}" if at_least else "{size} on {device}", size=_size(size), device=device)
        for device, size, at_least in held
        if size >= WORTH_A_WORD
    )


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:,.0f} MiB"

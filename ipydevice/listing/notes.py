"""What is worth knowing about the kind of a thing and is not odd: wrappers, layouts, pinned memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ipydevice import placement
from ipydevice.language import Sentence, say
from ipydevice.listing.survey import Many
from ipydevice.placement.kinds import attributes, class_name, home_of, is_a

# Of torch.nn.parallel and torch.distributed.fsdp; `fully_shard` makes classes called FSDPLinear and the like.
_SPREADS = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel")
_SHARDED = "FSDP"
# Why there may be more tensors than were counted, by the bound of `placement.Bounds`.
_CUT: dict[str, tuple[Sentence, int]] = {
    "plain": ("at least {tensors}: {most} items of a container of numbers are looked at", placement.MOST_PLAIN),
    "items": ("at least {tensors}: {most} items of a container are looked at", placement.MOST_ITEMS),
    "members": ("at least {tensors}: {most} of the things in it are looked at", placement.MOST_MEMBERS),
    "depth": ("at least {tensors}: it is looked at {most} levels deep", placement.DEPTH),
}


def of_tensor(t: Any) -> str:
    """Its class where that is not torch's own, and a layout other than rows of numbers: "DTensor", "sparse_coo"."""
    words = [] if placement.is_plain(t) else [class_name(type(t))]
    layout = str(placement.read(t, "layout")).removeprefix("torch.")
    if layout not in ("strided", "None"):
        words.append(layout)
    elif not words and placement.read(t, "is_nested"):
        words.append(say("nested"))
    return ", ".join(words)


def of_many(found: Many) -> str:
    """How many tensors are in it, what spreads it over devices, whether a loader pins memory."""
    count = sum(found.counts.values())
    known = say("{count} tensor" if count == 1 else "{count} tensors", count=f"{count:,}")
    counted = known if count or found.inside.cut else ""
    if found.inside.cut:
        sentence, most = _CUT[found.inside.cut]
        counted = say(sentence, tensors=counted, most=f"{most:,}")
    return ", ".join(filter(None, (counted, *_words(found))))


def _words(found: Many) -> Iterator[str]:
    held = attributes(found.value)
    if found.kind == "module":
        yield from _of_module(found.value, held)
    elif found.kind == "loader" and type(held.get("pin_memory")) is bool:
        yield f"pin_memory={held['pin_memory']}"


def _of_module(module: Any, held: dict[str, Any]) -> Iterator[str]:
    name = class_name(type(module))
    if name in _SPREADS and home_of(module) == "torch":
        cards = held.get("device_ids")
        many = len(cards) if type(cards) is list else 0
        yield say("{kind} over {count} devices", kind=name, count=many) if many > 1 else name
    elif _is_sharded(module):
        yield _SHARDED
    if name == "OptimizedModule":  # torch/_dynamo/eval_frame.py
        yield say("compiled")
    if is_a(module, "script"):
        yield "ScriptModule"
    parts = held.get("hf_device_map")
    if type(parts) is dict:
        places = {str(place) for place in dict.values(parts) if type(place) in (int, str)}
        one = len(parts) == 1
        yield say(
            "hf_device_map of {count} part on {devices}" if one else "hf_device_map of {count} parts on {devices}",
            count=len(parts),
            devices=", ".join(sorted(places)),
        )
    elif "_hf_hook" in held:
        yield say("accelerate hook")


def _is_sharded(module: Any) -> bool:
    """Whether ``torch.distributed.fsdp.fully_shard`` has put its class in front of the module's own."""
    bases = type.__dict__["__mro__"].__get__(type(module))
    return any(class_name(base) == "FSDPModule" and placement.module_name(base).startswith("torch.") for base in bases)

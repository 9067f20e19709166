"""Everything that makes a tensor and takes ``device=``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from ipydevice.virtual import cards
from ipydevice.virtual.generators import check_generator
from ipydevice.virtual.moving import send
from ipydevice.virtual.patches import Patches, stands_in
from ipydevice.virtual.tags import device_of, on_card, storage_of, tag

Tensor = torch.Tensor

_PLAIN = (
    *("arange", "empty", "empty_permuted", "empty_quantized", "empty_strided", "eye", "full", "linspace", "logspace"),
    *("ones", "range", "scalar_tensor", "tensor", "tril_indices", "triu_indices", "zeros"),
)
_RANDOM = ("normal", "rand", "randint", "randn", "randperm")
_LIKE = ("empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like")
_WINDOWS = ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window")
_SPARSE = tuple(f"sparse_{layout}_tensor" for layout in ("bsc", "bsr", "compressed", "coo", "csc", "csr"))
_SHARING = ("as_tensor", "asarray")
_METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")


def _factory(original: Callable[..., Any], *, from_data: bool = False) -> Callable[..., Any]:
    """`from_data`: the first argument may be a tensor whose device is kept where none is given."""

    def make(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        target = None if device is None else cards.resolve(device)
        model = args[0] if args and isinstance(args[0], Tensor) else None
        generator = kwargs.get("generator")
        if generator is not None:
            where = target or (device_of(model) if model is not None else cards.CPU)
            check_generator(generator, where)
        if target is None and from_data and model is not None and on_card(model):
            target = device_of(model)
        if target is not None and target.type == "cuda":
            kwargs["device"] = cards.CPU
            kwargs.pop("pin_memory", None)
        pinned = bool(kwargs.pop("pin_memory", False))
        cards.thread.factory_depth += 1
        try:
            made = original(*args, **kwargs)
        finally:
            cards.thread.factory_depth -= 1
        if target is not None and target.type in ("cuda", "cpu"):
            tag(made, target)
        if pinned:
            storage_of(made)._virtual_pinned = True  # type: ignore[attr-defined]
        return made

    return stands_in(original, make)


def _sharing(original: Callable[..., Any]) -> Callable[..., Any]:
    """`as_tensor` and `asarray` share memory with what they are given, where it is on the device already."""

    def share(data: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.pop("device", None)
        if isinstance(data, Tensor):
            target = device_of(data) if device is None else cards.resolve(device)
            if target.type not in ("cuda", "cpu"):
                return original(data, *args, device=target, **kwargs)
            return original(send(data, target), *args, **kwargs)
        target = cards.CPU if device is None else cards.resolve(device)
        cards.thread.factory_depth += 1
        try:
            made = original(data, *args, device=cards.CPU if target.type == "cuda" else target, **kwargs)
        finally:
            cards.thread.factory_depth -= 1
        return send(made, target) if target.type == "cuda" else made

    return stands_in(original, share)


def _wrapper_subclass(original: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper whose C++ device were cuda would abort the process in its first backward."""

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        given = [value for value in (*args, kwargs.get("device")) if isinstance(value, torch.device)]
        if not given or given[0].type != "cuda":
            return original(*args, **kwargs)
        args = tuple(cards.CPU if isinstance(value, torch.device) else value for value in args)
        made = original(*args, **({**kwargs, "device": cards.CPU} if "device" in kwargs else kwargs))
        return tag(made, cards.resolve(given[0]))

    return make


def _nested(original: Callable[..., Any]) -> Callable[..., Any]:
    make = _factory(original)

    @functools.wraps(original)
    def nest(tensor_list: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is None or kwargs.get("layout") is not torch.jagged:
            return make(tensor_list, *args, device=device, **kwargs)
        parts = [torch.as_tensor(part, device=device) for part in tensor_list]  # the wrapper takes their place
        return original(parts, *args, **kwargs)

    return nest


def install(patches: Patches) -> None:
    for name in (*_PLAIN, *_RANDOM, *_LIKE, *_WINDOWS, *_SPARSE):
        if hasattr(torch, name):
            patches.replace(torch, name, _factory(getattr(torch, name), from_data=name == "tensor"))
    dataset = sys.modules.get("torch.utils.data.dataset")  # it has taken the name for itself, for random_split
    if dataset is not None:
        patches.replace(dataset, "randperm", torch.randperm)
    for name in _SHARING:
        patches.replace(torch, name, _sharing(getattr(torch, name)))
    for name in _METHODS:
        patches.replace(Tensor, name, _factory(getattr(Tensor, name), from_data=True))
    wrapper = Tensor._make_wrapper_subclass
    patches.replace(Tensor, "_make_wrapper_subclass", staticmethod(_wrapper_subclass(wrapper)))
    for name in ("fftfreq", "rfftfreq"):
        patches.replace(torch.fft, name, _factory(getattr(torch.fft, name)))
    patches.replace(torch.nested, "nested_tensor", _nested(torch.nested.nested_tensor))

"""Replacing attributes of PyTorch, and putting every one of them back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import handle_torch_function, has_torch_function

from ipydevice.virtual.cards import process

_MISSING = object()
_mode_active = torch._C._is_torch_function_mode_enabled


class Patches:
    """The replaced attributes, in order; `restore` puts back what was there, or nothing where nothing was."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        self._saved.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    def restore(self) -> None:
        while self._saved:
            owner, name, value = self._saved.pop()
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)

    def originals(self) -> list[tuple[Any, str, Any]]:
        """(owner, name, what stood there in the owner itself) of every attribute that is replaced now."""
        return list(self._saved)


def stands_in(original: Callable[..., Any], replacement: Callable[..., Any]) -> Callable[..., Any]:
    """An entry point that does what `original` does for everybody else first, and then `replacement`.

    Tensor subclasses and active torch function modes see the call as they see PyTorch's own (with the entry point
    itself as the function, which is what the name in torch now means); without virtual GPUs (code that kept the entry
    point after `disable`) the original runs.
    """

    @functools.wraps(original)
    def entry(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values()) if kwargs else args
        if _mode_active() or has_torch_function(given):
            return handle_torch_function(entry, _overriding(given), *args, **kwargs)
        if not process.count:
            return original(*args, **kwargs)
        return replacement(*args, **kwargs)

    return entry


def _overriding(args: tuple[Any, ...]) -> list[Any]:
    """What may have a say of its own: tensors, and others that take calls over, as the proxies of torch.fx do."""
    found: list[Any] = []
    for value in args:
        if isinstance(value, list | tuple):
            found.extend(item for item in value if isinstance(item, torch.Tensor))
        elif isinstance(value, torch.Tensor) or has_torch_function((value,)):
            found.append(value)
    return found

"""Virtual GPUs: a CPU-only PyTorch behaves as if it had ``cuda:0``, ``cuda:1``, ...

    from ipydevice.virtual import virtual_gpus

    with virtual_gpus(2):
        x = torch.ones(3, device="cuda:1")

Arithmetic is real and runs on the CPU; placement is checked by PyTorch's own rules and fails in PyTorch's own words.
torch is imported when the cards are switched on, not before.

What is not the same as on a real card, yet or ever:

- the default generators of the host and of all cards are one stream, the host's, so that numbers equal a plain CPU
  run; a real card draws others;
- nothing is asynchronous: streams, events and `synchronize` do nothing;
- ``torch.compile`` runs eagerly; ``jit.trace``, ``torch.export``, CUDA graphs, DLPack and NCCL are refused;
- ``torch.autocast("cuda")`` casts the operators that the CPU's autocast casts;
- ``torch.device(0)`` is refused by PyTorch itself (``"cuda:0"`` and ``.to(0)`` work), and names taken with
  ``from torch import zeros`` before the cards were on know nothing of them;
- in functions (not modules) that ``torch.jit.script`` compiled, the words of a device error are lost;
- one reading of PyTorch made the rules: not yet verified on CUDA (tests/parity).
"""

from __future__ import annotations

import os
import sys
from types import TracebackType

__all__ = ["enabled", "trim_traceback", "virtual_gpus"]

_OPERATORS = os.path.join("torch", "_ops.py")
_ROOM = os.path.dirname(os.path.abspath(__file__)) + os.sep


class virtual_gpus:  # noqa: N801  (used like a function: `with virtual_gpus(2):`)
    """``n`` virtual cards, as a context manager or through ``enable()`` and ``disable()``.

    Nested use is allowed: the innermost number counts, and leaving it brings back the one before.  Leaving the last
    one restores PyTorch to the letter; tensors that are still alive become what they always were, CPU tensors.

    Raises:
        ValueError: ``n`` is not an int of at least 1.
        RuntimeError: this PyTorch has real CUDA devices; `disable()` without an `enable()` before it.
    """

    def __init__(self, n: int = 2) -> None:
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise ValueError(f"virtual_gpus(n) takes the number of cards, an int of at least 1, but got {n!r}")
        self.n = n
        self._entered = 0

    def enable(self) -> virtual_gpus:
        """Switch the cards on for this process, until `disable()`."""
        from ipydevice.virtual.session import push

        push(self.n)
        self._entered += 1
        return self

    def disable(self) -> None:
        """Undo one `enable()` of this object."""
        if not self._entered:
            raise RuntimeError("these virtual GPUs are not enabled: call enable() before disable()")
        from ipydevice.virtual.session import pop

        self._entered -= 1
        pop()

    def __enter__(self) -> virtual_gpus:
        return self.enable()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.disable()

    def __repr__(self) -> str:
        return f"virtual_gpus({self.n})"


def enabled() -> int:
    """The number of virtual cards now; 0 when there are none."""
    session = sys.modules.get("ipydevice.virtual.session")
    return session.count() if session is not None else 0


def is_own_frame(filename: str) -> bool:
    """Whether code of this file stands in for PyTorch's C++: a real CUDA traceback has no such frame."""
    return filename.startswith(_ROOM)


def trim_traceback(exception: BaseException) -> None:
    """Take our own frames out of an exception's traceback, where a CUDA build has none.

    For hooks that show exceptions, after the exception has propagated: a frame cannot cut itself.
    Frames of ``torch/_ops.py`` right below ours (the operator that we called) go too; a user's frames all stay.
    """
    kept: list[TracebackType] = []
    entry, below_ours = exception.__traceback__, False
    while entry is not None:
        name = entry.tb_frame.f_code.co_filename
        below_ours = is_own_frame(name) or (below_ours and name.endswith(_OPERATORS))
        if not below_ours:
            kept.append(entry)
        entry = entry.tb_next
    for upper, lower in zip(kept, [*kept[1:], None], strict=False):  # an exception never raised has no frame
        upper.tb_next = lower
    outermost = kept[0] if kept else None
    if exception.__traceback__ is not outermost:
        BaseException.with_traceback(exception, outermost)  # a frozen dataclass takes no assignment

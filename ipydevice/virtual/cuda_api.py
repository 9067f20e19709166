"""``torch.cuda`` and ``torch.accelerator`` as notebooks call them."""

from __future__ import annotations

import collections
import time
from typing import Any

import torch

from ipydevice.virtual import cards
from ipydevice.virtual.generators import set_host_state
from ipydevice.virtual.patches import Patches
from ipydevice.virtual.tags import Memory, memory

NAME = "Virtual GPU"
CAPABILITY = (8, 0)


class CurrentDevice:
    """``torch.cuda.device``: the current card, inside a ``with``."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else cards.index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = cards.current()
        if self.idx >= 0:
            cards.thread.current = self.idx

    def __exit__(self, *error: object) -> None:
        cards.thread.current = self.prev_idx


class CurrentDeviceOf(CurrentDevice):
    """``torch.cuda.device_of``: the card of a tensor, if it is on one."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if getattr(obj, "is_cuda", False) else None)


class Stream:
    """A stream on which everything has already happened."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device = cards.card(cards.index_of(device))
        self.device_index = self.device.index
        self.priority = priority
        self.cuda_stream = 0
        self.stream_id = 0

    def query(self) -> bool:
        return True

    def synchronize(self) -> None: ...

    def wait_event(self, event: Any) -> None: ...

    def wait_stream(self, stream: Any) -> None: ...

    def record_event(self, event: Any = None) -> Any:
        event = Event(enable_timing=True) if event is None else event
        event.record(self)
        return event

    def is_capturing(self) -> bool:
        return False

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None: ...

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream=0x0>"


class Event:
    """An event that knows when it was recorded."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.enable_timing = enable_timing
        self.device: Any = None  # as on a real card: it is made on the stream that first records it
        self._seconds: float | None = None

    def record(self, stream: Any = None) -> None:
        self._seconds = time.perf_counter()
        if self.device is None:
            self.device = cards.card(cards.index_of(None)) if stream is None else stream.device

    def query(self) -> bool:
        return True

    def synchronize(self) -> None: ...

    def wait(self, stream: Any = None) -> None: ...

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to `end_event`."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._seconds is None or end_event._seconds is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._seconds - self._seconds) * 1000


class AnyEvent(Event):
    """``torch.Event``, which is told its device first."""

    def __init__(self, device: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.device = cards.card(cards.index_of(device))


class StreamContext:
    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> Any:
        return self.stream

    def __exit__(self, *error: object) -> None: ...


class DeviceProperties:
    name = NAME
    major, minor = CAPABILITY
    total_memory = cards.TOTAL_MEMORY
    multi_processor_count = 1
    max_threads_per_multi_processor = 2048
    warp_size = 32
    is_integrated = 0
    is_multi_gpu_board = 0
    gcnArchName = NAME  # noqa: N815  (CUDA's name)

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count})"
        )


def _memory(device: Any) -> Memory:
    return memory.setdefault(cards.card(cards.index_of(device)), Memory())


def memory_allocated(device: Any = None) -> int:
    return _memory(device).now


def max_memory_allocated(device: Any = None) -> int:
    return _memory(device).peak


def reset_peak_memory_stats(device: Any = None) -> None:
    _memory(device).peak = _memory(device).now


def mem_get_info(device: Any = None) -> tuple[int, int]:
    return max(cards.TOTAL_MEMORY - _memory(device).now, 0), cards.TOTAL_MEMORY


def memory_stats(device: Any = None) -> dict[str, Any]:
    used = _memory(device)
    stats: dict[str, Any] = collections.OrderedDict()
    for name in ("allocated_bytes", "reserved_bytes", "active_bytes"):
        stats[f"{name}.all.current"] = used.now
        stats[f"{name}.all.peak"] = used.peak
        stats[f"{name}.all.allocated"] = used.total
        stats[f"{name}.all.freed"] = used.total - used.now
    stats["allocation.all.current"] = used.blocks
    stats["num_ooms"] = 0
    return stats


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    used = _memory(device)
    return (
        f"virtual card {cards.index_of(device)}: {used.now} bytes in {used.blocks} blocks, "
        f"at most {used.peak} bytes so far"
    )


def set_device(device: Any) -> None:
    index = cards.index_of(device, optional=False)
    if index >= 0:
        cards.thread.current = index


def get_device_name(device: Any = None) -> str:
    return get_device_properties(device).name


def get_device_properties(device: Any = None) -> DeviceProperties:
    if isinstance(device, int) and not 0 <= device < cards.process.count:
        raise AssertionError("Invalid device id")
    cards.index_of(device)
    return DeviceProperties()


def get_device_capability(device: Any = None) -> tuple[int, int]:
    found = get_device_properties(device)
    return found.major, found.minor


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(int(seed))


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _false(*args: Any, **kwargs: Any) -> bool:
    return False


def _true(*args: Any, **kwargs: Any) -> bool:
    return True


def _count() -> int:
    return cards.process.count


def _initialized() -> bool:
    return cards.process.owner is not None and not cards.in_bad_fork()


def _current() -> int:
    cards.initialise()
    return cards.current()


def _exchange(device: int) -> int:
    before = cards.current()
    if device >= 0:
        cards.thread.current = device
    return before


def _random_state(device: Any = None) -> Any:
    return torch.default_generator.get_state()


def _set_random_states(new_states: Any) -> None:
    for state in new_states:
        _set_random_state(state)


def _set_random_state(new_state: Any, device: Any = None) -> None:
    set_host_state(new_state)


_CUDA: dict[str, Any] = {
    "is_available": lambda: cards.process.count > 0,
    "device_count": _count,
    "current_device": _current,
    "set_device": set_device,
    "is_initialized": _initialized,
    "init": cards.initialise,
    "_lazy_init": cards.initialise,
    "_is_in_bad_fork": cards.in_bad_fork,
    "_exchange_device": _exchange,
    "_maybe_exchange_device": _exchange,
    "device": CurrentDevice,
    "device_of": CurrentDeviceOf,
    "get_device_name": get_device_name,
    "get_device_properties": get_device_properties,
    "get_device_capability": get_device_capability,
    "synchronize": lambda device=None: (cards.index_of(device), None)[1],
    "empty_cache": _nothing,
    "ipc_collect": _nothing,
    "memory_allocated": memory_allocated,
    "max_memory_allocated": max_memory_allocated,
    "memory_reserved": memory_allocated,
    "max_memory_reserved": max_memory_allocated,
    "memory_cached": memory_allocated,
    "max_memory_cached": max_memory_allocated,
    "reset_peak_memory_stats": reset_peak_memory_stats,
    "reset_max_memory_allocated": reset_peak_memory_stats,
    "reset_max_memory_cached": reset_peak_memory_stats,
    "reset_accumulated_memory_stats": _nothing,
    "mem_get_info": mem_get_info,
    "memory_stats": memory_stats,
    "memory_summary": memory_summary,
    "utilization": lambda device=None: 0,
    "Stream": Stream,
    "Event": Event,
    "stream": StreamContext,
    "StreamContext": StreamContext,
    "set_stream": _nothing,
    "current_stream": lambda device=None: Stream(device),
    "default_stream": lambda device=None: Stream(device),
    "is_current_stream_capturing": _false,
    "is_bf16_supported": _true,
    "can_device_access_peer": _true,
    "get_arch_list": lambda: ["sm_80"],
    "manual_seed": _seed,
    "manual_seed_all": _seed,
    "seed": lambda: torch.default_generator.seed(),
    "seed_all": lambda: torch.default_generator.seed(),
    "initial_seed": lambda: torch.default_generator.initial_seed(),
    "get_rng_state": _random_state,
    "get_rng_state_all": lambda: [_random_state() for _ in range(cards.process.count)],
    "set_rng_state": _set_random_state,
    "set_rng_state_all": _set_random_states,
}

_MEMORY: dict[str, Any] = {
    "set_per_process_memory_fraction": _nothing,
    "memory_snapshot": lambda mempool_id=None: [],
    "_record_memory_history": _nothing,
    "_snapshot": lambda device=None: {"segments": [], "device_traces": []},
    "_dump_snapshot": _nothing,
}
_RANGES: dict[str, Any] = {"range_push": lambda msg: 0, "range_pop": lambda: 0, "mark": _nothing}

_ACCELERATOR: dict[str, Any] = {
    "is_available": lambda: cards.process.count > 0,
    "device_count": _count,
    "current_accelerator": lambda check_available=False: torch.device("cuda"),
    "current_device_index": _current,
    "current_device_idx": _current,
    "set_device_index": set_device,
    "set_device_idx": set_device,
    "current_stream": lambda device=None: Stream(device),
    "set_stream": _nothing,
    "synchronize": _nothing,
    "device_index": CurrentDevice,
    "empty_cache": _nothing,
    "memory_allocated": memory_allocated,
    "max_memory_allocated": max_memory_allocated,
    "memory_reserved": memory_allocated,
    "max_memory_reserved": max_memory_allocated,
    "memory_stats": memory_stats,
    "reset_peak_memory_stats": reset_peak_memory_stats,
    "get_memory_info": mem_get_info,
}

# Those of whatever accelerator there is; DistributedDataParallel copies its inputs on such a stream since 2.9.
_TORCH: dict[str, Any] = {"Stream": Stream, "Event": AnyEvent}


def install(patches: Patches) -> None:
    for owner, table in (
        (torch.cuda, _CUDA | _MEMORY),
        (torch.cuda.memory, _CUDA | _MEMORY),
        (torch.cuda.random, _CUDA),
        (torch.cuda.nvtx, _RANGES),
        (getattr(torch, "accelerator", None), _ACCELERATOR),
        (torch, _TORCH),
    ):
        for name, replacement in table.items():
            if owner is not None and name in vars(owner):
                patches.replace(owner, name, replacement)

"""Which physical card ``cuda:0`` is: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, read as the driver reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ipydevice.toolbox import accelerators
from ipydevice.toolbox.choosing import VISIBLE
from ipydevice.toolbox.troubles import Trouble

PCI_ORDER = "PCI_BUS_ID"  # as nvidia-smi counts; CUDA's own default is FASTEST_FIRST


@dataclass(frozen=True, slots=True)
class NumberedDevice:
    """One device as this process and as the machine know it."""

    logical: str  # "cuda:0"
    physical: str  # the entry of CUDA_VISIBLE_DEVICES: "2", "GPU-8a1f..."; its own index where nothing is hidden
    name: str = ""
    uuid: str = ""
    smi: int | None = None  # nvidia-smi's number for it, where NVML tells

    def __str__(self) -> str:
        smi = f", nvidia-smi's {self.smi}" if self.smi is not None else ""
        return f"{self.logical} is card {self.physical}{smi}: {self.name}{f' {self.uuid}' if self.uuid else ''}"


@dataclass(frozen=True, slots=True)
class DeviceMap:
    """Logical numbers of this process against the cards of the machine."""

    devices: tuple[NumberedDevice, ...]
    visible: str | None  # CUDA_VISIBLE_DEVICES or its like, as it is now; None: not set
    order: str | None  # CUDA_DEVICE_ORDER
    started: bool  # whether the driver runs in this process: later changes of the variables change nothing
    current: str | None  # this thread's current device
    troubles: tuple[Trouble, ...] = ()

    def __getitem__(self, logical: int) -> NumberedDevice:
        return self.devices[logical]

    def __len__(self) -> int:
        return len(self.devices)

    def __iter__(self) -> Iterator[NumberedDevice]:
        return iter(self.devices)

    def __str__(self) -> str:
        if not self.devices:
            lines = ["no accelerator in this process"]
        else:
            lines = [f"{device}{'  (current)' if device.logical == self.current else ''}" for device in self.devices]
        return "\n".join([*lines, *(f"✗ {trouble}" for trouble in self.troubles)])

    __repr__ = __str__


def device_map() -> DeviceMap:
    """Each device of this process: its logical name, the physical card behind it, its name and UUID.

    Also tells what is wrong with the numbering: CUDA_VISIBLE_DEVICES changed after CUDA had started, an entry at
    which the driver stops reading, nvidia-smi counting in another order. Asking for names starts the driver, as
    ``torch.cuda.get_device_name`` does, and takes no memory on a card. The current device is that of this thread:
    each thread begins with card 0.
    """
    kind = accelerators.kind()
    visible = visible_devices(kind or "cuda")
    order = os.environ.get("CUDA_DEVICE_ORDER")
    if kind is None:
        return DeviceMap((), visible, order, False, None, tuple(_of_entries(visible)))
    started = accelerators.in_use(kind)
    entries = None if visible is None else entries_of(visible)
    smi = _smi_order() if kind == "cuda" else []
    devices = tuple(_numbered(kind, index, entries, smi) for index in range(accelerators.count(kind)))
    current = f"{kind}:{accelerators.current(kind)}"
    troubles = (*_of_entries(visible), *_of_changes(kind, entries, devices, started), *_of_order(order, devices))
    return DeviceMap(devices, visible, order, started, current, troubles)


def visible_devices(kind: str) -> str | None:
    """The variable that says which cards a process sees, as it is now."""
    return next((os.environ[name] for name in VISIBLE.get(kind, ()) if name in os.environ), None)


def entries_of(visible: str) -> list[str]:
    """The cards that CUDA_VISIBLE_DEVICES names: reading stops at the first that is none, a repeated one hides all.

    After the CUDA programming guide, "CUDA environment variables"; `torch.cuda` counts by the same rules.
    """
    found: list[str] = []
    for entry in visible.split(","):
        card = entry.strip()
        if not _is_card(card):
            break
        if card in found:
            return []
        found.append(card)
    return found


def _is_card(entry: str) -> bool:
    return entry.isdecimal() or entry.startswith(("GPU-", "MIG-"))


def _numbered(kind: str, index: int, entries: list[str] | None, smi: list[str]) -> NumberedDevice:
    properties = accelerators.ask(kind, "get_device_properties", index)
    name = accelerators.ask(kind, "get_device_name", index) or getattr(properties, "name", kind)
    uuid = str(getattr(properties, "uuid", "") or "")
    if uuid and not uuid.startswith(("GPU-", "MIG-")):
        uuid = f"GPU-{uuid}"
    physical = str(index) if entries is None else entries[index] if index < len(entries) else "?"
    return NumberedDevice(f"{kind}:{index}", physical, str(name), uuid, smi.index(uuid) if uuid in smi else None)


def _smi_order() -> list[str]:
    """UUIDs in nvidia-smi's order, as torch itself asks NVML; nothing where it cannot."""
    ask: Any = getattr(torch.cuda, "_raw_device_uuid_nvml", None)
    try:
        return list(ask() or ()) if ask is not None and torch.version.cuda else []
    except Exception:  # noqa: BLE001 (a driver's own trouble)
        return []


def _of_entries(visible: str | None) -> Iterator[Trouble]:
    if not visible:
        if visible == "":
            yield Trouble(
                "CUDA_VISIBLE_DEVICES is set to nothing, which hides every card", "unset it", "all_hidden", False
            )
        return
    entries = [entry.strip() for entry in visible.split(",")]
    stop = next((entry for entry in entries if not _is_card(entry)), None)
    twice = next((entry for entry in entries if entry and entries.count(entry) > 1), None)
    if stop is not None:
        text = f"CUDA_VISIBLE_DEVICES={visible!r}: the driver stops reading at {stop!r}"
        yield Trouble(text, "it names cards by number or UUID", "visible_stops", stop != "-1")
    elif twice is not None:
        yield Trouble(f"CUDA_VISIBLE_DEVICES={visible!r} names {twice} twice, which hides every card", "", "all_hidden")


def _of_changes(
    kind: str, entries: list[str] | None, devices: tuple[NumberedDevice, ...], started: bool
) -> Iterator[Trouble]:
    if not started:
        return
    variable = VISIBLE.get(kind, ("",))[0]
    advice = "set it before the first use of a card: restart, or set it for the whole kernel"
    if entries is not None and _names_others(entries, devices):
        count = len(entries)
        yield Trouble(
            f"{variable} names {count} card{'s' * (count != 1)} and this process has {len(devices)}: "
            f"it was changed after {kind} had started, which changes nothing",
            advice,
            "changed_after_start",
        )
    elif _at_start(variable) not in (None, os.environ.get(variable, "")):
        yield Trouble(
            f"{variable} is not what it was when this process began ({_at_start(variable)!r})",
            "if it was changed after the first use of a card, the numbers are those from before",
            "changed_after_start",
            certain=False,
        )


def _names_others(entries: list[str], devices: tuple[NumberedDevice, ...]) -> bool:
    if len(entries) != len(devices):
        return True
    pairs = [(entry, device.uuid) for entry, device in zip(entries, devices, strict=True) if device.uuid]
    return any(entry.startswith("GPU-") and not uuid.startswith(entry) for entry, uuid in pairs)


def _at_start(variable: str) -> str | None:
    """The variable as the process was given it; None where the system does not tell (Linux alone does)."""
    try:
        given = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    prefix = f"{variable}=".encode()
    return next((line[len(prefix) :].decode(errors="replace") for line in given if line.startswith(prefix)), "")


def _of_order(order: str | None, devices: tuple[NumberedDevice, ...]) -> Iterator[Trouble]:
    if order == PCI_ORDER or len({device.name for device in devices}) < 2:
        return
    yield Trouble(
        "cards of several kinds, and CUDA counts the fastest first while nvidia-smi counts by slot",
        f"CUDA_DEVICE_ORDER={PCI_ORDER}, set before CUDA starts, makes the numbers the same",
        "order",
    )

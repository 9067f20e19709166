"""Contents of a checkpoint -> the table that also lists a workspace."""

from __future__ import annotations

import os
from collections import Counter

from ipydevice.checkpoint.contents import Contents, Tensor
from ipydevice.checkpoint.loading import Outlook, outlook
from ipydevice.diagnosis import Fix, Inventory, Row

_FORMATS = {
    "zip": "torch.save",
    "legacy": "torch.save before PyTorch 1.6",
    "torchscript": "TorchScript",
    "safetensors": "safetensors",
    "index": "sharded checkpoint",
    "pickle": "plain pickle",
}


def inventory_of(contents: Contents) -> Inventory:
    """Rows, bytes by the device saved from, and what loading would do here."""
    seen = outlook(contents)
    totals: Counter[str] = Counter()
    for storage in contents.storages:
        totals[storage.location or "file"] += storage.bytes
    notes = [("damage", text) for text in contents.damage]
    name = os.path.basename(contents.path)
    return Inventory(
        tuple(_rows(contents)),
        dict(totals),
        contents.left,
        title=f"{name} ({_FORMATS[contents.format]}): {_counted(contents)}",
        notes=(*notes, *seen.says),
        at_least=contents.cut,
        fixes=tuple(_fixes(seen)),
    )


def _counted(contents: Contents) -> str:
    tensors, storages = contents.devices.total(), len(contents.storages)
    counted = f"{tensors:,} tensor{'' if tensors == 1 else 's'} in {storages:,} storage{'' if storages == 1 else 's'}"
    return f"at least {counted}" if contents.cut else counted


def _fixes(seen: Outlook) -> list[Fix]:
    if not seen.code:
        return []
    note = "runs the code that the file names" if "weights_only=False" in seen.code else ""
    return [Fix(f"Load it with `{seen.code}`", "repair", setup=f"checkpoint = {seen.code}", note=note)]


def _rows(contents: Contents) -> list[Row]:
    first: dict[tuple[str, str], str] = {}
    return [_row(tensor, first) for tensor in contents.tensors]


def _row(tensor: Tensor, first: dict[tuple[str, str], str]) -> Row:
    notes = [tensor.file] if tensor.file else []
    if tensor.storage is not None:
        known = first.setdefault((tensor.file, tensor.storage.key), tensor.path)
        if known != tensor.path:
            notes.append(f"shares storage with {known}")
        elif tensor.storage.bytes > tensor.bytes:
            notes.append(f"part of a storage of {tensor.storage.bytes:,} bytes, which is saved whole")
    return Row(
        tensor.path or "(the whole)", tensor.kind, tensor.device, "", True, tensor.shape, tensor.dtype, tensor.bytes,
        note="; ".join(notes), requires_grad=tensor.requires_grad,
    )  # fmt: skip

"""The files that PyTorch users keep weights in, read by their directories: no data, no unpickling."""

from __future__ import annotations

import json
import os
import struct
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from ipydevice.checkpoint import ENDINGS, files_in
from ipydevice.checkpoint.contents import Contents, Storage, Tensor
from ipydevice.checkpoint.machine import Described, describe
from ipydevice.checkpoint.tensors import take_tensors
from ipydevice.language import say

MOST_HEADER = 512 * 2**20  # bytes of a pickle or header: beyond, it is no honest one
_MAGIC = 0x1950A86A20F9469CFC6C  # torch/serialization.py, MAGIC_NUMBER of files before PyTorch 1.6
_COUNT = 8  # bytes: in those files the number of elements stands before each storage
# https://huggingface.co/docs/safetensors/index#format
_SAFETENSORS = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool", "U16": "uint16", "U32": "uint32", "U64": "uint64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "C64": "complex64",
}  # fmt: skip


def read(path: str | os.PathLike[str]) -> Contents:
    """What a checkpoint file holds.

    Raises:
        OSError: the file is not there or may not be read.
        ValueError: it is none of the known formats; the text says what was looked for.
    """
    where = Path(path).expanduser()
    if where.is_dir():
        raise ValueError(_of_folder(path, where))
    if where.name.endswith(".json"):
        return _index(where)
    with where.open("rb") as file:
        start = file.read(8)
        file.seek(0)
        if start[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
            return _zip(where, file)
        if _is_safetensors(start, where):
            return _safetensors(where, file)
        if start[:1] == b"\x80":
            return _legacy(where, file)
        if not start:
            raise ValueError(f"{path} is empty")
    if tarfile.is_tarfile(where):
        raise ValueError(f"{path} is a tar file, as PyTorch wrote before 0.1.10: save it again with a newer one")
    raise ValueError(f"{path} is no checkpoint: neither of torch.save (zip or legacy) nor safetensors nor an index")


def _of_folder(path: str | os.PathLike[str], where: Path) -> str:
    """What to do with a folder: which checkpoint files are in it."""
    names = files_in(where)
    if names:
        return say(
            "{path} is a folder: give a file in it, such as {file} (there: {names})",
            path=path,
            file=os.path.join(path, names[0]),
            names=_some(names),
        )
    if (where / ".metadata").is_file():  # torch.distributed.checkpoint.FileSystemWriter
        return say(
            "{path} is a folder of torch.distributed.checkpoint, which is not read here; "
            "dcp_to_torch_save of torch.distributed.checkpoint.format_utils makes one file of it",
            path=path,
        )
    return say("{path} is a folder, with no checkpoint file in it ({endings})", path=path, endings=", ".join(ENDINGS))


def _zip(where: Path, file: IO[bytes]) -> Contents:
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{where} begins as a zip file but its directory is damaged: {error}") from None
    with archive:
        sizes = {one.filename: one for one in archive.infolist()}
        pickle = next((name for name in sizes if name.count("/") == 1 and name.endswith("/data.pkl")), None)
        if pickle is None:
            what = "an exported program: torch.export.load" if any("archive_format" in name for name in sizes) else ""
            raise ValueError(f"{where} is a zip file without data.pkl, so not of torch.save" + (what and f"; {what}"))
        root = pickle.removesuffix("data.pkl")
        script = root + "constants.pkl" in sizes
        contents = Contents(str(where), "torchscript" if script else "zip")
        if sizes[pickle].file_size > MOST_HEADER:
            raise ValueError(f"the pickle in {where} says that it has {sizes[pickle].file_size:,} bytes")
        try:
            with archive.open(pickle) as stream:
                _take(contents, describe(stream))
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            contents.damage.append(f"the pickle cannot be read: {error}")
        for storage in contents.storages:
            entry = sizes.get(f"{root}data/{storage.key}")
            if entry is None or entry.file_size < storage.bytes:
                has = "is missing" if entry is None else f"has {entry.file_size:,} of {storage.bytes:,} bytes"
                contents.damage.append(f"storage {storage.key[:40]} {has}")
    return contents


def _legacy(where: Path, file: IO[bytes]) -> Contents:
    """Pickles one behind the other: magic number, protocol, system, the object, keys of storages; then the data."""
    contents = Contents(str(where), "legacy")
    first = describe(file)
    if first.value != _MAGIC:
        # A pickle that torch.load refuses; it is worth knowing what it would run if it is unpickled otherwise.
        contents.format = "pickle"
        _take(contents, first)
        return contents
    for described in (describe(file), describe(file)):  # protocol version, system
        contents.damage += [described.damage] if described.damage else []
    _take(contents, describe(file))
    keys = describe(file)
    contents.damage += [keys.damage] if keys.damage else []
    left = os.fstat(file.fileno()).st_size - file.tell()
    wanted = sum(_COUNT + storage.bytes for storage in contents.storages)
    if not contents.damage and left < wanted:
        contents.damage.append(f"the file ends early: {left:,} of {wanted:,} bytes of data")
    return contents


def _take(contents: Contents, described: Described) -> None:
    take_tensors(described.value, contents)
    contents.named += dict.fromkeys(map(str, described.named))
    contents.called += dict.fromkeys(map(str, described.called))
    contents.opcodes |= described.opcodes
    if described.damage:
        contents.damage.append(described.damage)


def _is_safetensors(start: bytes, where: Path) -> bool:
    if where.suffix == ".safetensors":
        return True
    return len(start) == 8 and start[:1] != b"\x80" and 2 <= struct.unpack("<Q", start)[0] < where.stat().st_size


def _safetensors(where: Path, file: IO[bytes]) -> Contents:
    contents = Contents(str(where), "safetensors")
    total = os.fstat(file.fileno()).st_size
    head = file.read(8)
    length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
    if not 2 <= length <= min(MOST_HEADER, total - 8):
        raise ValueError(f"{where} is no safetensors file: its header would have {length:,} bytes of {total:,}")
    try:
        header = json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} is no safetensors file: its header is no JSON ({str(error)[:80]})") from None
    if type(header) is not dict:
        raise ValueError(f"{where} is no safetensors file: its header is no table of tensors")
    for name, entry in header.items():
        if name != "__metadata__":
            _safetensor(contents, name, entry, total - 8 - length)
    return contents


def _safetensor(contents: Contents, name: str, entry: Any, room: int) -> None:
    try:
        begin, end = entry["data_offsets"]
        shape = tuple(int(size) for size in entry["shape"])
        dtype = _SAFETENSORS.get(entry["dtype"], str(entry["dtype"]).lower())
        size = int(end) - int(begin)
    except (TypeError, KeyError, ValueError):
        contents.damage.append(f"the entry of {name[:60]} is not understood")
        return
    if size < 0 or begin < 0 or end > room:
        contents.damage.append(f"the data of {name[:60]} lies outside the file")
    storage = Storage(name, "", max(0, size))
    contents.add(Tensor(f"[{name!r}]", "tensor", "", shape, dtype, storage, max(0, size)))


def _index(where: Path) -> Contents:
    """``model.safetensors.index.json``: which shard holds which tensor; the shards themselves are read too."""
    try:
        table = json.loads(where.read_bytes())["weight_map"]
        pairs = {str(name): str(shard) for name, shard in table.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{where} is no index of a sharded checkpoint: it has no weight_map") from None
    contents = Contents(str(where), "index")
    for shard in dict.fromkeys(pairs.values()):
        if Path(shard).name != shard:  # an index from elsewhere must not point at other folders
            contents.damage.append(f"shard {shard[:80]} lies outside the folder and was not read")
            continue
        try:
            contents.add_shard(shard, read(where.with_name(shard)))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            contents.damage.append(f"shard {shard[:80]}: {reason}")
    _compare(contents, pairs)
    return contents


def _compare(contents: Contents, pairs: dict[str, str]) -> None:
    found = {tensor.path: tensor.file for tensor in contents.tensors}
    missing = [name for name, shard in pairs.items() if found.get(f"[{name!r}]") != shard]
    if missing and not contents.left:
        contents.damage.append(f"not in the shard that the index says: {_some(missing)}")


def _some(names: Iterable[str], most: int = 3) -> str:
    listed = list(names)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(name[:60] for name in listed[:most]) + more

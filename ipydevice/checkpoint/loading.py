"""What `torch.load` would do with a file on this machine, told from its directory alone.

The rules are those of torch/serialization.py (where each storage goes) and of
torch/_weights_only_unpickler.py (what is allowed); both are asked, since versions differ.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ipydevice.checkpoint.contents import Contents
from ipydevice.checkpoint.machine import COMPUTED

_TRUE = frozenset({"1", "y", "yes", "true"})  # torch.serialization.load, true_values
_MOST_NAMED = 4
# Modules of which a call while loading does more than make an object: it runs programs, opens files, evaluates text.
_POWERFUL = frozenset({
    "os", "posix", "nt", "subprocess", "pty", "sys", "shutil", "socket", "ctypes", "importlib", "runpy",
    "builtins", "code", "codeop", "marshal", "pickle", "_pickle", "dill", "cloudpickle", "webbrowser",
    "urllib", "http", "requests", "multiprocessing", "asyncio", "signal", "threading", "types", "operator", "timeit",
    "pdb", "bdb", "cProfile", "profile", "pip", "venv", "ftplib", "smtplib", "tempfile", "pathlib", "io", "_io",
    "functools", "linecache", "inspect", "pydoc", "doctest", "unittest", "ensurepip", "idlelib", "turtledemo",
})  # fmt: skip
_HARMLESS = frozenset({
    "builtins.set", "builtins.frozenset", "builtins.complex", "builtins.bytearray", "builtins.slice", "builtins.range",
    "builtins.object", "builtins.list", "builtins.dict", "builtins.tuple", "builtins.int", "builtins.float",
    "builtins.str", "builtins.bool", "builtins.bytes", "types.SimpleNamespace", "functools.partial",
    "pathlib.Path", "pathlib.PosixPath", "pathlib.WindowsPath", "pathlib.PurePosixPath", "pathlib.PureWindowsPath",
    "io.BytesIO", "_io.BytesIO",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outlook:
    """What loading would do; `code` is the call to use instead where the plain one fails."""

    says: tuple[tuple[str, str], ...]  # labels and sentences
    code: str = ""


def outlook(contents: Contents) -> Outlook:
    """What the file's own loader would do here."""
    dangers = tuple(_dangers(contents))
    if contents.format in ("safetensors", "index") and not contents.opcodes:
        return _of_safetensors(contents)
    torch = _torch()
    if torch is None:
        return Outlook((*dangers, ("load", "PyTorch is not installed here, so what torch.load would do is not known")))
    name = repr(contents.path)
    if contents.format == "pickle":
        return Outlook((*dangers, ("load", f"`torch.load({name})` refuses it: torch.save has not written it")))
    if contents.format == "torchscript":
        absent = dict(_absent(contents, torch))
        where = f": {next(iter(absent.values()))}" if absent else ""
        code = f"torch.jit.load({name}, map_location='cpu')"
        return Outlook((*dangers, ("load", f"a TorchScript archive; `torch.load` refuses it{where}: `{code}`")), code)
    absent = dict(_absent(contents, torch))
    refused = _refused(contents, torch) if weights_only(torch) else ()
    options = (", map_location='cpu'" if absent else "") + (", weights_only=False" if refused else "")
    code = f"torch.load({name}{options})"
    says: list[tuple[str, str]] = [*dangers]
    if absent:
        says.append(("load", f"`torch.load({name})` fails here: {'; '.join(absent.values())}"))
    if refused:
        says.append(("load", f"`torch.load({name})` refuses it by `weights_only=True`: {_listed(refused)}"))
    if not absent and not refused:
        says.append(("load", f"`torch.load({name})` {_where(contents)}"))
        return Outlook(tuple(says))
    if refused and not dangers:
        says.append(("trust", f"if you trust the file, `{code}` runs the code that it names"))
    return Outlook(tuple(says), "" if dangers else code)


def weights_only(torch: Any) -> bool:
    """Whether `torch.load` restricts what is loaded, if the call does not say so itself."""
    if os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE:
        return True
    if os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE:
        return False
    release = tuple(int(part) for part in str(torch.__version__).split(".")[:2] if part.isdigit())
    return release >= (2, 6)  # https://pytorch.org/blog/pytorch2-6/, weights_only by default


def _torch() -> Any:
    return importlib.import_module("torch") if importlib.util.find_spec("torch") is not None else None


def _absent(contents: Contents, torch: Any) -> Iterator[tuple[str, str]]:
    """Locations that this machine lacks, with why."""
    counts = Counter(storage.location for storage in contents.storages)
    for location, count in counts.items():
        why = missing(location, torch)
        if why:
            yield location, f"{count:,} storage{'' if count == 1 else 's'} saved from {location}, but {why}"


def missing(location: str, torch: Any) -> str:
    """Why a device is not on this machine, or "" where it is."""
    kind, _, index = location.partition(":")
    if kind in ("cpu", "meta"):
        return ""
    if kind == "mps":
        return "" if torch.backends.mps.is_available() else "this machine has no mps device"
    module = getattr(torch, kind, None) if kind.isidentifier() else None
    if module is None or not hasattr(module, "is_available"):
        return f"this PyTorch knows no device {kind!r}"
    if not module.is_available():
        return f"torch.{kind}.is_available() is False"
    count = module.device_count()
    number = int(index) if index.isdecimal() else 0
    return "" if number < count else f"torch.{kind}.device_count() is {count}"


def _refused(contents: Contents, torch: Any) -> tuple[str, ...]:
    """Names and instructions that loading with ``weights_only=True`` does not allow."""
    unpickler = importlib.import_module("torch._weights_only_unpickler")
    try:
        allowed = {*unpickler._get_allowed_globals(), *unpickler._get_user_allowed_globals()}
    except (AttributeError, ValueError, TypeError):  # private: another version may have other names
        return ()
    blocked = getattr(unpickler, "_blocklisted_modules", ())
    names = [name for name in contents.named if name not in allowed or name.partition(".")[0] in blocked]
    # The module imports exactly the instructions that it carries out, under their names in `pickle`.
    codes = sorted(code for code in contents.opcodes if code not in vars(unpickler))
    return (*names, *(f"the instruction {code}" for code in codes))


def _dangers(contents: Contents) -> Iterator[tuple[str, str]]:
    calls = [name for name in contents.called if is_powerful(name)]
    if calls:
        yield "danger", f"unpickling it would call {_listed(calls)}: do not load it with `weights_only=False`"


def is_powerful(name: str) -> bool:
    """Whether a call of that name while loading may do more than make an object."""
    return name not in _HARMLESS and (name == COMPUTED or name.partition(".")[0] in _POWERFUL)


def _of_safetensors(contents: Contents) -> Outlook:
    name = repr(contents.path)
    if contents.format == "index":
        return Outlook((("load", "each shard loads to cpu unless told otherwise: the format keeps no devices"),))
    code = f"safetensors.torch.load_file({name})"
    return Outlook((("load", f"`{code}` loads to cpu unless given `device='cuda'`: the format keeps no devices"),))


def _where(contents: Contents) -> str:
    counts = contents.devices
    if not counts:
        return "works here; there is no tensor in it"
    places = ", ".join(f"{count:,} on {device}" for device, count in counts.most_common(_MOST_NAMED))
    return f"works here and puts {'at least ' if contents.cut else ''}{places}"


def _listed(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(name[:80] for name in names[:_MOST_NAMED]) + more

"""What the Tab key offers behind ``%devices``: names with a device, checkpoint files, options and their values."""

from __future__ import annotations

import glob
from typing import Any

from ipydevice import listing, placement
from ipydevice.checkpoint import is_name_of_one

OPTIONS = (
    "--device", "--help", "--json", "--kind", "--odd", "--plain", "--ranks", "--sort", "--verbose", "--virtual", "-v",
)  # fmt: skip
MOST_NAMES = 1_000  # looked at, since somebody waits at the key
MOST_DEVICES = 16


def candidates(namespace: dict[str, Any], line: str, word: str) -> list[str]:
    """Completions of `word`, the last one of `line`."""
    before = line[: len(line) - len(word)].split()
    option = before[-1] if before else ""
    if option == "--sort":
        offered = list(listing.SORTS)
    elif option == "--kind":
        offered = list(listing.KINDS)
    elif option == "--virtual":
        offered = ["1", "2", "4", "off"]
    elif option == "--device":
        offered = _devices(namespace)
    elif word.startswith("-"):
        offered = list(OPTIONS)
    else:
        offered = [*_names(namespace, word), *_files(word)]
    return [one for one in offered if one.startswith(word)]


def _names(namespace: dict[str, Any], word: str) -> list[str]:
    if placement.torch_class("tensor") is None:
        return []
    pairs = [pair for pair in list(namespace.items()) if _is_the_users(pair[0]) and pair[0].startswith(word)]
    with placement.quiet():
        return [name for name, value in pairs[:MOST_NAMES] if placement.kind_of(value) is not None]


def _devices(namespace: dict[str, Any]) -> list[str]:
    found: dict[str, None] = {}
    for name in _names(namespace, ""):
        found.update(dict.fromkeys(placement.devices_of(namespace[name])))
        if len(found) >= MOST_DEVICES:
            break
    return sorted(found)


def _is_the_users(name: object) -> bool:
    return type(name) is str and not name.startswith("_") and name not in ("In", "Out")


def _files(word: str) -> list[str]:
    return sorted(path for path in glob.glob(glob.escape(word) + "*") if is_name_of_one(path))

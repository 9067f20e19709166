"""A dry run: the names are put back afterwards, and what was changed in place is named."""

from __future__ import annotations

from typing import Any

from ipydevice import placement

_MOST = 50_000  # tensors remembered


class Snapshot:
    """A namespace as it was."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._names = dict(namespace)
        self._versions: list[tuple[str, Any, int]] = []
        self._sizes: list[tuple[str, Any, int]] = []
        left = _MOST
        for name, value in self._names.items():
            if name.startswith("_"):
                continue
            if type(value) in (list, dict, set):
                self._sizes.append((name, value, len(value)))
            for found in placement.walk(value, limit=left):
                left -= 1
                self._versions.append((name + found.path, found.value, _version(found.value)))

    def restore(self) -> tuple[str, ...]:
        """Put the names back; tells what is not as it was all the same."""
        for name in [name for name in self._namespace if name not in self._names]:
            del self._namespace[name]
        self._namespace.update(self._names)
        changed = [path for path, tensor, version in self._versions if _version(tensor) != version]
        changed += [name for name, value, size in self._sizes if len(value) != size]
        return tuple(dict.fromkeys(changed))


def _version(tensor: Any) -> int:
    try:
        return int(tensor._version)
    except (AttributeError, RuntimeError):  # inference tensors do not count
        return -1

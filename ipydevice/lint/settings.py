"""Which rules are asked of which files: the command line over ``[tool.ipydevice.lint]`` in pyproject.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from ipydevice.input_error import InputError
from ipydevice.lint.rule import Rule

KEYS = ("select", "extend-select", "ignore", "exclude", "per-file-ignores")


@dataclass(frozen=True, slots=True)
class Settings:
    """The rules and files that are wanted."""

    select: tuple[str, ...] = ()  # ids or their beginnings; empty: all but those that are advice
    extend: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()  # patterns of paths
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    root: str = ""

    def wants(self, rule: Rule, file: str) -> bool:
        chosen = _begins(rule.id, self.select) if self.select else not rule.opt_in
        chosen = chosen or _begins(rule.id, self.extend)
        if not chosen or _begins(rule.id, self.ignore):
            return False
        return not any(_matches(file, pattern, self.root) and _begins(rule.id, ids) for pattern, ids in self.per_file)

    def excludes(self, path: Path) -> bool:
        return any(_matches(str(path), pattern, self.root) for pattern in self.exclude)

    @classmethod
    def near(cls, path: Path) -> Settings:
        """Those of the nearest pyproject.toml above `path` that has any. Raises InputError where they are wrong."""
        try:
            folders = [path.resolve(), *path.resolve().parents]
        except (OSError, RuntimeError):  # a loop of links
            return cls()
        for folder in folders:
            file = folder / "pyproject.toml"
            if file.is_file():
                try:
                    table = tomllib.loads(file.read_text(encoding="utf-8"))
                except (OSError, ValueError) as error:
                    raise InputError(f"{file} cannot be read ({error})") from None
                given = table.get("tool", {}).get("ipydevice", {}).get("lint")
                if given is not None:
                    return cls.of(given, file)
        return cls()

    @classmethod
    def of(cls, given: Any, file: Path) -> Settings:
        """Settings of a table. Raises InputError for keys and values that there are not."""
        if not isinstance(given, dict):
            raise InputError(f"{file}: [tool.ipydevice.lint] has to be a table")
        for key in given:
            if key not in KEYS:
                raise InputError(f"{file}: [tool.ipydevice.lint] has no `{key}`; it has {', '.join(KEYS)}")
        per_file = given.get("per-file-ignores", {})
        if not isinstance(per_file, dict):
            raise InputError(f"{file}: per-file-ignores has to be a table of patterns with lists of rules")
        return cls(
            select=_ids(given.get("select", []), file, "select"),
            extend=_ids(given.get("extend-select", []), file, "extend-select"),
            ignore=_ids(given.get("ignore", []), file, "ignore"),
            exclude=_texts(given.get("exclude", []), file, "exclude"),
            per_file=tuple((pattern, _ids(ids, file, "per-file-ignores")) for pattern, ids in per_file.items()),
            root=str(file.parent),
        )


def _texts(given: Any, file: Path | str, key: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        raise InputError(f"{file}: {key} has to be a list of texts, and is {given!r}")
    return tuple(given)


def _ids(given: Any, file: Path | str, key: str) -> tuple[str, ...]:
    ids = _texts(given, file, key)
    require_known(ids, f"{file}: {key}")
    return ids


def require_known(ids: tuple[str, ...], where: str) -> None:
    """Raises InputError for an id with which no rule begins."""
    from ipydevice.lint.rules import RULES

    for id_ in ids:
        if id_ != "ALL" and not any(rule.startswith(id_) for rule in RULES):
            raise InputError(f"{where}: there is no rule {id_}; `ipydevice lint --list` shows them")


def _begins(rule: str, ids: tuple[str, ...]) -> bool:
    return any(id_ == "ALL" or rule.startswith(id_) for id_ in ids)


def _matches(file: str, pattern: str, root: str) -> bool:
    path = Path(file)
    plain = path.as_posix()
    try:
        inside = path.resolve().relative_to(root).as_posix() if root else plain
    except (ValueError, OSError, RuntimeError):
        inside = plain
    folders = [inside, *(str(parent) for parent in Path(inside).parents)]
    return any(fnmatch(name, pattern.rstrip("/")) for name in (*folders, path.name))

"""One failing notebook: its header (what is right) and its cells."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REQUIRED = ("id", "cause", "culprit", "culprit_cell", "origin_cell", "culprit_device", "fail_cell", "expect_after_fix")


@dataclass(frozen=True)
class Case:
    path: Path
    header: dict[str, Any] = field(hash=False)
    cells: tuple[str, ...]  # cells[0] is the cell with number 1

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def fail_cell(self) -> int:
        return int(self.header["fail_cell"])

    @property
    def causes(self) -> list[str]:
        return [self.header["cause"], *self.header.get("also_causes", [])]

    @property
    def culprits(self) -> list[str]:
        return [self.header["culprit"], *self.header.get("also_culprit", [])]

    @property
    def right_cells(self) -> set[int]:
        head = self.header
        return {head["culprit_cell"], head["origin_cell"], *head.get("also_cells", [])}

    @property
    def compare_numbers(self) -> bool:
        return bool(self.header.get("numbers", True))

    def sources(self) -> dict[int, str]:
        return dict(enumerate(self.cells, 1))

    def notebook(self) -> list[dict[str, Any]]:
        """The cells as `ipydevice.fixes.apply` takes them."""
        return [{"cell": n, "cell_id": f"id-{n}", "source": s} for n, s in self.sources().items()]


def read(path: Path) -> Case:
    """Reads one file; ValueError where the header is not as the README of the cases wants it."""
    head, *cells = re.split(r"^# %%[^\n]*\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line.removeprefix("#").removeprefix(" ") for line in head.splitlines() if line.startswith("#")]
    try:
        header = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: header: {error}") from error
    missing = [key for key in REQUIRED if key not in header]
    if missing:
        raise ValueError(f"{path}: header lacks {', '.join(missing)}")
    return Case(path, header, tuple(cell.strip("\n") for cell in cells))


def collect(folders: list[Path], pattern: str = "") -> list[Case]:
    files = sorted(
        {file for folder in folders for file in ([folder] if folder.is_file() else folder.glob("[0-9]*.py"))}
    )
    return [read(file) for file in files if re.search(pattern, file.stem)]

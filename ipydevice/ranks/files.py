"""A report file for each rank, and the table of a folder of them: for programs started by torchrun and its like."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ipydevice.input_error import InputError
from ipydevice.ranks.across import compared
from ipydevice.ranks.debug import as_models
from ipydevice.ranks.report import Missing, RankRow, RanksReport

FORMAT = 1
_PATTERN = "rank-*.json"


def write_rank_report(folder: str | os.PathLike[str], model: Any = None, error: BaseException | None = None) -> Path:
    """Write what this process is and does into a folder that all ranks share; ``ipydevice ranks FOLDER`` merges them.

    Writes ``rank-00003.json``, whole or not at all, and returns its path. Talks to no other process, so a rank that
    fails can write as well.

    Args:
        model: a module, or several as a dictionary by name.
        error: an exception; what `ipydevice.explain` says of it is told, or its own text.

    Raises:
        TypeError: `model` is no module.
        OSError: the folder cannot be written to.
    """
    from ipydevice.ranks import here, modules

    models = as_models(model)
    row = here.row(models, error=_told(error))
    written = {"format": FORMAT, "row": row.to_dict(), "parameters": modules.parameters_of(models)}
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"rank-{row.rank:05d}.json"
    half = path.with_suffix(f".{row.pid}.part")
    half.write_text(json.dumps(written), encoding="utf-8")
    half.replace(path)
    return path


def _told(error: BaseException | None) -> str:
    if error is None:
        return ""
    from ipydevice.session import explain

    diagnosis = explain(error)
    if diagnosis is None:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(": ")
    return f"{diagnosis.headline} ({diagnosis.failed})"


def merge(folder: str | os.PathLike[str]) -> RanksReport:
    """The table of all report files in a folder; ranks without one are named.

    Raises:
        InputError: there is no such folder, or no report in it.
    """
    place = Path(folder)
    if not place.is_dir():
        said = "no folder but a file" if place.exists() else "no such folder"
        raise InputError(f"{place}: {said}; give the one that write_rank_report(folder) was called with")
    rows: list[RankRow] = []
    missing: list[Missing] = []
    parameters: dict[int, Mapping[str, str]] = {}
    for path in sorted(place.glob(_PATTERN)):
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            row = RankRow.from_dict(told["row"])
            parameters[row.rank] = told["parameters"]
            rows.append(row)
        except (OSError, ValueError, TypeError, KeyError) as error:
            number = path.stem.partition("-")[2]
            if not number.isdecimal():
                continue
            missing.append(Missing(int(number), f"{path.name} cannot be read ({type(error).__name__})"))
    if not rows:
        raise InputError(f"{place} holds no report of a rank ({_PATTERN}); write_rank_report(folder) writes them")
    known = {row.rank for row in rows} | {one.rank for one in missing}
    size = max(row.world_size or 0 for row in rows)
    missing += [
        Missing(rank, "no report: it ended before it wrote one, or never began")
        for rank in range(size)
        if rank not in known
    ]
    report = RanksReport(
        tuple(sorted(rows, key=lambda row: row.rank)), tuple(sorted(missing, key=lambda one: one.rank))
    )
    return compared(report, lambda rank: parameters.get(rank, {}))

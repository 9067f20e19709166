"""Virtual cards against real ones: a table of what differs, and of what could not be run.

    python tests/parity/compare.py [table.tsv]

Needs a PyTorch with CUDA and one card (two for everything); takes a few minutes.  Texts, devices, dtypes and shapes
must be equal; numbers may differ by rounding, and differ rightly wherever the card itself draws random ones.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

COLLECT = Path(__file__).with_name("collect.py")


class Row(NamedTuple):
    group: str
    name: str
    verdict: str  # equal, numbers, differs, not run
    real: str
    virtual: str


def collect(kind: str) -> dict[str, dict[str, Any]]:
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if kind == "virtual" else {}
    done = subprocess.run(
        [sys.executable, str(COLLECT), kind], env={**os.environ, **hidden}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"collecting from {kind} cards failed:\n{done.stderr[-3000:]}")
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def _close(real: Any, virtual: Any) -> bool:
    if isinstance(real, float) and isinstance(virtual, float):
        return math.isclose(real, virtual, rel_tol=1e-3, abs_tol=1e-4) or (math.isnan(real) and math.isnan(virtual))
    if isinstance(real, list) and isinstance(virtual, list):
        return len(real) == len(virtual) and all(map(_close, real, virtual))
    return bool(real == virtual)


def _outline(found: Any) -> Any:
    """All but the numbers."""
    if isinstance(found, list):
        return [_outline(each) for each in found if not isinstance(each, float)]
    return found


def judge(group: str, name: str, real: Any, virtual: Any) -> Row:
    if isinstance(real, str) and real.startswith("not run"):
        return Row(group, name, "not run", real, "")
    if _close(real, virtual):
        return Row(group, name, "equal", "", "")
    verdict = "numbers" if _outline(real) == _outline(virtual) else "differs"
    return Row(group, name, verdict, str(real)[:300], str(virtual)[:300])


def compare() -> list[Row]:
    real, virtual = collect("real"), collect("virtual")
    return [
        judge(group, name, answer, virtual[group].get(name))
        for group, answers in real.items()
        for name, answer in answers.items()
    ]


def main() -> None:
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device here: virtual cards are not verified against real ones")
        return
    rows = compare()
    text = "\n".join(
        "\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in row) for row in [Row(*Row._fields), *rows]
    )
    target = sys.argv[1] if len(sys.argv) > 1 else None
    if target is None:
        print(text)
    else:
        Path(target).write_text(text + "\n", encoding="utf-8")
    counts = {
        verdict: sum(row.verdict == verdict for row in rows) for verdict in ("equal", "numbers", "differs", "not run")
    }
    print(f"torch {torch.__version__}, {torch.cuda.device_count()} card(s): {counts}", file=sys.stderr)


if __name__ == "__main__":
    main()

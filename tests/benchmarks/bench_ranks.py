"""What one table of all ranks costs, in real gloo groups of 2 to 64 processes on one machine.

python tests/benchmarks/bench_ranks.py [PROCESSES]

Processes are forked from one that has loaded torch, each with a model of 200 tensors on a virtual card. All share
this machine's processors, so seconds say little: what counts is how they grow, beside `all_gather_object` of the same
rows in the same group (the usual way, which hangs where a rank does not join).
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
import zlib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "ranks"), str(Path(__file__).parent)]

import groups  # noqa: E402  (needs the path)

ROUNDS = 5
TENSORS = 200


def measured(rank: int, size: int) -> dict[str, Any] | None:
    """In each process: seconds of the table and of a collective, by round; on rank 0."""
    import torch
    import torch.distributed as dist
    from torch import nn

    import ipydevice
    from ipydevice.ranks import here, modules

    ipydevice.virtual_gpus(size).enable()
    torch.cuda.set_device(rank)
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(TENSORS // 2))).to(f"cuda:{rank}")
    found: dict[str, list[float]] = {"row": [], "table": [], "told": [], "collective": []}
    for _ in range(ROUNDS):
        start = time.perf_counter()
        row = here.row({"model": model})
        found["row"].append(time.perf_counter() - start)
        dist.barrier()
        start = time.perf_counter()
        report = ipydevice.debug_ddp(model, timeout=120)
        found["table" if rank == 0 else "told"].append(time.perf_counter() - start)
        assert report is None or len(report.rows) == size
        dist.barrier()
        rows: list[Any] = [None] * size
        start = time.perf_counter()
        dist.all_gather_object(rows, row.to_dict())
        found["collective"].append(time.perf_counter() - start)
    if rank > 1:
        return None
    return {
        "bytes": len(json.dumps(row.to_dict())),
        "parameters": len(zlib.compress(json.dumps(modules.parameters_of({"model": model})).encode())),
        **{name: statistics.median(values) for name, values in found.items() if values},
    }


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    sizes = [size for size in (2, 8, 32, 64, 128, 256) if size <= most]
    print("processes    one row    table, rank 0  another rank  all_gather   row        parameters")
    for size in sizes:
        first, second, *_ = groups.run(importlib.import_module("bench_ranks").measured, size)  # pickled by that name
        times = (first["row"], first["table"], second["told"], first["collective"])
        sizes_of = (first["bytes"], first["parameters"])
        columns = [f"{seconds * 1e3:9.1f} ms" for seconds in times] + [f"{count / 1024:7.1f} KiB" for count in sizes_of]
        print(f"{size:9}", *columns, flush=True)


if __name__ == "__main__":
    main()

"""What recognising costs, beside what raising and formatting the same error costs.

python tests/benchmarks/bench_messages.py
"""

from __future__ import annotations

import subprocess
import sys
import timeit
import traceback

from ipydevice.messages import recognise

KNOWN = (
    "Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors on cuda:0 "
    "(when checking argument in method wrapper_CUDA_addmm)"
)
CASES = {
    "no device error": "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
    "near miss": "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 14.75 GiB",
    "known text": KNOWN,
    "unknown text": "boxes are on cuda:0 but anchors are on cpu, move one of them",
}
FIRST = (
    "import time, torch\nfrom ipydevice.messages import recognise\nstart = time.process_time()\n"
    "recognise(RuntimeError({text!r}))\nprint(time.process_time() - start)"
)


def caught(text: str) -> Exception:
    try:
        raise RuntimeError(text)
    except RuntimeError as error:
        return error


def best(call: object) -> float:
    timer = timeit.Timer(call)  # type: ignore[arg-type]
    number, _ = timer.autorange()
    return min(timer.repeat(5, number)) / number * 1e6


def main() -> None:
    formatting = best(lambda: traceback.format_exception(caught(KNOWN)))
    print(f"{'':20} {'us':>9}  of formatting one frame")
    print(f"{'traceback.format':20} {formatting:9.1f}  1.00")
    for name, text in CASES.items():
        error = caught(text)
        cost = best(lambda error=error: recognise(error))
        print(f"{name:20} {cost:9.1f}  {cost / formatting:.2f}")
    for name, text in CASES.items():
        out = subprocess.run(
            [sys.executable, "-c", FIRST.format(text=text)], capture_output=True, text=True, check=True
        ).stdout
        print(f"first {name:14} {float(out) * 1e6:9.1f}  {float(out) * 1e6 / formatting:.2f}")


if __name__ == "__main__":
    main()

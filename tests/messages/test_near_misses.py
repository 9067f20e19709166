"""Texts that look like device errors and are not."""

from __future__ import annotations

import pytest

from ipydevice.messages import recognise
from messages import texts

NEAR_MISSES = texts.rows("near_misses.tsv")


@pytest.mark.parametrize("row", NEAR_MISSES, ids=lambda row: row["text"][:50])
def test_is_no_device_error(row: dict[str, str]) -> None:
    assert recognise(texts.exception(row["exception"], row["text"])) is None


def raised(code: str) -> BaseException:
    try:
        exec(code, {})
    except BaseException as error:  # noqa: BLE001  # SystemExit and KeyboardInterrupt are among the cases
        return error
    raise AssertionError(f"{code!r} raises nothing")


@pytest.mark.parametrize(
    "code",
    [
        "1 / 0", "[][1]", "{}['cuda:0']", "None.device", "device", "int('cpu')", "open('/nowhere/cuda:0.pt')",
        "import cuda_toolkit_of_mine", "assert False", "assert False, 'cpu'", "raise StopIteration", "raise SystemExit",
        "raise KeyboardInterrupt", "f = lambda: f(); f()", "'cpu' + 1", "x: int = 'a'; x.to('cuda')",
        "eval('cpu cuda')",
        "raise NotImplementedError", "raise ValueError", "raise ValueError(3)", "raise ValueError(b'cuda:0', 'cpu')",
        "import json; json.loads('{cuda}')", "import argparse; argparse.ArgumentParser(exit_on_error=False)"
        ".parse_args(['--device=cuda'])",
    ],
)  # fmt: skip
def test_ordinary_errors_are_none(code: str) -> None:
    assert recognise(raised(code)) is None

"""Device errors behind other errors."""

from __future__ import annotations

import pytest

from ipydevice.messages import find, recognise

TEXT = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"


def caught(code: str) -> Exception:
    try:
        exec(code, {"TEXT": TEXT})
    except Exception as error:  # noqa: BLE001
        return error
    raise AssertionError("raises nothing")


def test_cause_is_found_and_handed_out() -> None:
    error = caught("raise ValueError('training failed') from RuntimeError(TEXT)")
    found = find(error)
    assert found is not None
    assert found[0] is error.__cause__
    assert (found[1].id, found[1].exception_type) == ("PT010", "RuntimeError")


def test_context_is_found() -> None:
    error = caught("try:\n raise RuntimeError(TEXT)\nexcept RuntimeError:\n {}['x']")
    found = find(error)
    assert found is not None
    assert found[0] is error.__context__


def test_suppressed_context_is_not_looked_at() -> None:
    error = caught("try:\n raise RuntimeError(TEXT)\nexcept RuntimeError:\n raise ValueError('other') from None")
    assert recognise(error) is None


def test_own_text_comes_before_the_context() -> None:
    error = caught(
        "try:\n raise RuntimeError(TEXT)\nexcept RuntimeError:\n"
        " raise RuntimeError('Found two parameters on different devices, this is currently not supported.')"
    )
    found = find(error)
    assert found is not None
    assert found[0] is error
    assert found[1].id == "PT209"


def test_metric_says_it_in_its_own_words_and_the_cause_names_the_devices() -> None:
    error = caught(
        "raise RuntimeError('Encountered different devices in metric calculation (see stacktrace for details). This "
        "could be due to the metric class not being on the same device as input. Instead of "
        "`metric=MeanSquaredError(...)` try to do') from RuntimeError(TEXT)"
    )
    found = find(error)
    assert found is not None
    assert found[0] is error.__cause__
    assert (found[1].devices, found[1].library) == (("cuda:0", "cpu"), "torchmetrics")


def test_an_exact_cause_is_better_than_a_guess() -> None:
    error = caught("raise ValueError('batch is on cpu but should be on cuda:0') from RuntimeError(TEXT)")
    found = find(error)
    assert found is not None
    assert found[1].id == "PT010"


def test_group_members_are_found_at_any_depth() -> None:
    error = caught(
        "raise ExceptionGroup('tasks', [ValueError('a'), ExceptionGroup('more', [KeyError('b'), RuntimeError(TEXT)])])"
    )
    found = find(error)
    assert found is not None
    assert type(found[0]) is RuntimeError


def test_interrupt_over_a_device_error_is_an_interrupt() -> None:
    interrupt = KeyboardInterrupt()
    interrupt.__context__ = RuntimeError(TEXT)
    assert recognise(interrupt) is None


def test_cycle_ends() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__context__, other.__context__ = other, one
    assert recognise(one) is None


def test_endless_chain_is_cut() -> None:
    error: Exception = RuntimeError(TEXT)
    for number in range(1000):
        outer = ValueError(number)
        outer.__cause__ = error
        error = outer
    assert recognise(error) is None


@pytest.mark.parametrize("name", ["kornia.core.exceptions", "dgl._ffi.base", "lightning.fabric"])
def test_library_is_told_by_the_module_of_the_class(name: str) -> None:
    kind = type("OwnError", (Exception,), {"__module__": name})
    mismatch = recognise(kind("src is on cuda:0 but dst is on cpu"))
    assert mismatch is not None
    assert (mismatch.library, mismatch.exception_type) == (name.partition(".")[0], "OwnError")

"""Odd exceptions and odd texts: never an error of our own, never code of the user's beyond ``str``."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import weakref

import pytest

from ipydevice.messages import recognise
from messages import texts

TEXT = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"


class RaisingStrError(RuntimeError):
    def __str__(self) -> str:
        raise ValueError("cuda:0 and cpu are different devices")


class NoStrError(RuntimeError):
    def __str__(self) -> str:
        return 3  # type: ignore[return-value]


class EndlessError(RuntimeError):
    def __str__(self) -> str:
        return str(self)


class Shouting(str):
    def lower(self) -> str:
        raise AssertionError("a method of the user's ran")

    def __contains__(self, item: object) -> bool:
        raise AssertionError("a method of the user's ran")


class SubclassOfStrError(RuntimeError):
    def __str__(self) -> str:
        return Shouting(TEXT)


class PropertiesError(RuntimeError):
    @property
    def __cause__(self) -> BaseException:  # type: ignore[override]
        raise AssertionError("a property of the user's ran")

    __context__ = __cause__  # type: ignore[assignment]
    __class__ = __cause__  # type: ignore[assignment]

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"__getattr__({name!r}) ran")


@pytest.mark.parametrize("kind", [RaisingStrError, NoStrError, EndlessError])
def test_class_that_cannot_say_its_text_is_none(kind: type[RuntimeError]) -> None:
    assert recognise(kind(TEXT)) is None


@pytest.mark.parametrize("kind", [SubclassOfStrError, PropertiesError])
def test_no_other_code_of_the_class_runs(kind: type[RuntimeError]) -> None:
    mismatch = recognise(kind(TEXT))
    assert mismatch is not None
    assert mismatch.devices == ("cuda:0", "cpu")
    assert type(mismatch.text) is str


@pytest.mark.parametrize(
    "arguments", [(), ("",), (None,), (3,), (b"cuda:0 cpu",), (["cuda"],), ({"device": "cpu"},), ("a", "cuda:0", "cpu")]
)
def test_odd_arguments(arguments: tuple[object, ...]) -> None:
    assert recognise(RuntimeError(*arguments)) is None


def test_random_texts_of_our_own_words() -> None:
    """Words of all known texts in any order: nothing breaks, however odd."""
    random.seed(7)
    words = [word for row in texts.rows("known.tsv") for word in row["text"].split()]
    words += ["\x00", "\x1b[31m", "{", "}", "(", "[", "'", "\n", "\t", "💥", "cuda:", ":0", "device(type='", "%s", "\\"]
    for _ in range(400):
        recognise(RuntimeError(" ".join(random.choices(words, k=random.randint(1, 60)))))


def test_known_texts_cut_anywhere() -> None:
    random.seed(11)
    for row in texts.rows("known.tsv"):
        text = row["text"]
        begin, end = sorted(random.choices(range(len(text) + 1), k=2))
        for part in (text[:end], text[begin:], text[begin:end], text.upper(), text.lower(), text[::-1]):
            recognise(texts.exception(row["exception"], part))


@pytest.mark.parametrize(
    "text",
    [
        "device " * 300_000, "expected " * 50_000 + "cuda", "(" * 50_000 + "cpu cuda:0", "a.b" * 50_000 + " on cuda:0",
        "tensor(" * 20_000 + "device", "Caught RuntimeError in " * 9_000 + "cpu", 'File "x", line 1, in f\n' * 9_000,
        "Traceback (most recent call last):\n" * 9_000 + "cuda", "must be on " * 30_000 + "cpu",
    ],
    ids=range(9),
)  # fmt: skip
def test_huge_texts_end(text: str) -> None:
    recognise(RuntimeError(text))


def test_end_of_a_huge_text_is_read() -> None:
    mismatch = recognise(RuntimeError("x" * 1_000_000 + "\n" + TEXT))
    assert mismatch is not None
    assert mismatch.id == "PT010"


def test_nothing_is_kept_alive() -> None:
    class HeldError(RuntimeError):
        pass

    error = HeldError(TEXT)
    gone = weakref.ref(error)
    mismatch = recognise(error)
    del error
    gc.collect()
    assert mismatch is not None
    assert gone() is None


def test_ordinary_error_loads_no_catalogue() -> None:
    code = (
        "import sys\nfrom ipydevice.messages import recognise\n"
        "assert recognise(ValueError('mat1 and mat2 shapes cannot be multiplied')) is None\n"
        "print(*(name for name in sys.modules if name.startswith('ipydevice.messages.')), 'torch' in sys.modules)\n"
        "recognise(ValueError('on device'))\nprint('ipydevice.messages.entries' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")
    assert set(out[0].split()) == {"ipydevice.messages.mismatch", "ipydevice.messages.recognise", "False"}
    assert out[1] == "True"  # and the test above would notice

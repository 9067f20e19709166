"""Which language is spoken: `%config DeviceTools.language`, by default that of the locale."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from shells import Shell
from traitlets import TraitError
from traitlets.config import Config

from ipydevice import language, settings

VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
NONE = "There has been no device error in this session."
NONE_IN_CHINESE = "本次会话中没有出现过设备错误。"


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever the locale of who runs the tests."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    language.use("auto")
    yield
    monkeypatch.undo()
    language.use("auto")


@pytest.mark.parametrize(
    ("environment", "spoken"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "auto"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.GB18030"}, "zh"),
        ({"LANG": "zh"}, "zh"),
        ({"LANG": "zh-Hans"}, "zh"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "zh"),
    ],
)
def test_the_locale(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], spoken: str) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert language.in_use() == spoken
    assert (language.translations() == {}) == (spoken == "en")


def test_it_is_english_by_default(shell: Shell) -> None:
    shell.run("%load_ext ipydevice")
    assert NONE in shell.run("%devicefix").text


def test_the_locale_decides_until_somebody_does(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    shell.run("%load_ext ipydevice")
    assert NONE_IN_CHINESE in shell.run("%devicefix").text
    shell.run("%config DeviceTools.language = 'en'")
    assert NONE in shell.run("%devicefix").text


@pytest.mark.parametrize("wish", ["zh", "ZH"])
def test_set_and_taken_back(shell: Shell, wish: str) -> None:
    shell.run("%load_ext ipydevice")
    shell.run(f"%config DeviceTools.language = {wish!r}")
    assert NONE_IN_CHINESE in shell.run("%devicefix").text
    shell.run("%config DeviceTools.language = 'auto'")
    assert NONE in shell.run("%devicefix").text


def test_unloading_lets_the_locale_decide_again(shell: Shell) -> None:
    shell.run("%load_ext ipydevice")
    shell.run("%config DeviceTools.language = 'zh'")
    shell.run("%unload_ext ipydevice")
    assert language.in_use() == "en"


def test_from_the_configuration_file() -> None:
    InteractiveShell.clear_instance()
    config = Config({"DeviceTools": {"language": "zh"}, "HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(config=config)
    try:
        settings.register(shell)
        assert language.in_use() == "zh"
    finally:
        settings.unregister(shell)
        InteractiveShell.clear_instance()


@pytest.mark.parametrize("wish", ["fr", "", "chinese", 3])
def test_another_language_is_refused_in_clear_words(
    shell: Shell, wish: object, caplog: pytest.LogCaptureFixture
) -> None:
    shell.run("%load_ext ipydevice")
    with pytest.raises(TraitError, match="language"):
        settings.of(shell.ip).language = wish
    shell.run(f"%config DeviceTools.language = {wish!r}")
    assert "'language'" in caplog.text and "['auto', 'en', 'zh']" in caplog.text  # traitlets logs it
    assert settings.of(shell.ip).language == "auto"
    assert NONE in shell.run("%devicefix").text


def test_what_fills_a_place_is_never_read_as_a_sentence() -> None:
    language.use("zh")
    assert language.say("{name} is on {device}", name="{device} why", device="cpu") == "{device} why 在 cpu 上"
    assert language.say("nobody says {this}", this="{that}") == "nobody says {that}"


def test_chinese_stands_apart_from_latin_alone() -> None:
    language.use("zh")
    assert language.say("move {name} where it is made", name="x") == "在创建处移动 x"
    assert language.say("move {name} where it is made", name=language.say("what it returns")) == "在创建处移动返回值"

"""What a person may wish for: ``%config DeviceTools``, or ``c.DeviceTools`` in ``ipython_config.py``."""

from __future__ import annotations

from typing import Any

from traitlets import Bool, CaselessStrEnum, Int, observe
from traitlets.config import Configurable

from ipydevice import language


class DeviceTools(Configurable):
    """The wishes of one shell; IPython reads them from its configuration file, and `%config` sets them."""

    verbosity = CaselessStrEnum(
        ("short", "normal", "full"),
        "normal",
        help="How much a panel says: 'short' is one line under the traceback, which opens at a click or with "
        "%devicefix; 'full' has no limit of lines, shows the reasons and the table of names, and all of each fix.",
    ).tag(config=True)
    auto_display = Bool(
        True, help="Whether a panel stands under the traceback by itself. Without it %devicefix shows the panel."
    ).tag(config=True)
    rows = Int(
        None,
        allow_none=True,
        min=1,
        help="The most rows of a table in the output that is saved, and in a terminal. By default 300 and 40. "
        "The table of a live panel has all rows.",
    ).tag(config=True)
    colours = CaselessStrEnum(
        ("auto", "always", "never"),
        "auto",
        help="Colours in a terminal: 'auto' has them where IPython's own traceback has and NO_COLOR is not set.",
    ).tag(config=True)
    language = CaselessStrEnum(
        language.LANGUAGES,
        "auto",
        help="What panels and magics speak: 'en' English, 'zh' Chinese, 'auto' the language of the locale "
        "(LC_ALL, LC_MESSAGES, LANG) where it is one of these, else English.",
    ).tag(config=True)

    @observe("language")
    def _speak(self, change: Any) -> None:
        language.use(change.new)


def of(shell: Any) -> DeviceTools:
    """What is wished for in this shell; the defaults where we are not loaded."""
    for one in getattr(shell, "configurables", ()):
        if type(one) is DeviceTools:
            return one
    return DeviceTools()


def register(shell: Any) -> None:
    """Let ``%config`` know, once."""
    if not any(type(one) is DeviceTools for one in shell.configurables):
        ours = DeviceTools(parent=shell)
        shell.configurables.append(ours)
        language.use(ours.language)


def unregister(shell: Any) -> None:
    """Take it away again."""
    language.use("auto")
    shell.configurables[:] = [one for one in shell.configurables if type(one) is not DeviceTools]

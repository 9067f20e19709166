"""What a magic is asked for, and what is said of a wrong line."""

from __future__ import annotations

import re
from argparse import Namespace
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import parse_argstring

from ipydevice.language import say

HELP = ("-h", "--help")
_COMMENT = re.compile(r"(?:^|\s)#.*")


def parsed(magic: Any, line: str, name: str) -> Namespace | None:
    """The arguments of a magic's line; None where it asks for help, which is printed.

    Args:
        magic: a method decorated with ``magic_arguments``.
        line: what stands behind its name.
        name: the magic as a person writes it, such as ``%devices``.

    Raises:
        UsageError: what was wrong, with the magic's usage.
    """
    line = _COMMENT.sub("", line)
    if any(word in HELP for word in line.split()):
        print(magic.__doc__.removeprefix("::").strip().replace(f"%{name.lstrip('%')}", name, 1))
        return None
    try:
        found: Namespace = parse_argstring(magic, line)
    except UsageError as error:
        usage = " ".join(magic.parser.format_usage().replace("::", "").split()).removeprefix("%").partition(" ")[2]
        help_ = f"%{name.lstrip('%')}?"
        raise UsageError(
            say(
                "{name}: {error}. It takes {usage}; {help} says what each is",
                name=name,
                error=error,
                usage=usage,
                help=help_,
            )
        ) from None
    return found

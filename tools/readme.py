"""Write the parts of the README that are made of the catalogue.

    python tools/readme.py

A part stands between ``<!-- NAME: ... -->`` and ``<!-- end of NAME -->``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def parts() -> dict[str, Callable[[], str]]:
    from ipydevice.cli import quick_table

    return {"quick table": quick_table.as_markdown}


def filled(text: str) -> str:
    """The text with every part made anew. Raises ValueError where the marks of a part are missing."""
    for name, make in parts().items():
        marks = re.compile(rf"(<!-- {name}:[^>]*-->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        if marks.search(text) is None:
            raise ValueError(f"README.md has no marks <!-- {name}: ... --> and <!-- end of {name} -->")
        body = make()
        text = marks.sub(lambda found, body=body: f"{found[1]}\n{body}\n\n{found[2]}", text)  # type: ignore[misc]
    return text


def main() -> int:
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())

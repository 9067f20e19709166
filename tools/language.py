"""Brings a catalogue of `ipydevice/translations` up to date with the code.

python tools/language.py zh     # sentences that are new stand at the end of their file's part without a translation
python tools/language.py fr     # begins a new catalogue

A sentence that the code no longer says leaves the catalogue. `tests/language` asserts that none is missing.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from ipydevice.language import read, said_by_script

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ipydevice"
_COLUMNS = {"messages/catalogue.tsv": ("meaning", "remark")}


def said() -> dict[str, list[str]]:
    """The sentences of each file of the package, in their order; each stands with the first file that says it."""
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    for file in sorted(PACKAGE.rglob("*")):
        name = file.relative_to(PACKAGE).as_posix()
        if file.suffix == ".py":
            every = [sentence for sentence, _ in of_python(file.read_text(encoding="utf-8"))]
        elif file.suffix == ".js":
            every = said_by_script(file.read_text(encoding="utf-8"))
        else:
            continue
        new = [sentence for sentence in dict.fromkeys(every) if sentence not in seen]
        seen.update(new)
        if new:
            found[name] = new
    for name, columns in _COLUMNS.items():
        every = of_table((PACKAGE / name).read_text(encoding="utf-8"), columns)
        found[name] = [sentence for sentence in dict.fromkeys(every) if sentence and sentence not in seen]
        seen.update(found[name])
    return found


def of_python(text: str) -> Iterator[tuple[str, set[str] | None]]:
    """Sentences with the places that the call fills; None where they stand in a table and are filled elsewhere."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.AnnAssign) and node.value is not None and "Sentence" in ast.unparse(node.annotation):
            yield from ((sentence, None) for sentence in _of_expression(node.value))
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called == "say":
            filled = {keyword.arg for keyword in node.keywords if keyword.arg}
            yield from ((sentence, filled) for sentence in _of_expression(node.args[0]))
        elif called == "Sentence":
            yield from ((sentence, None) for sentence in _of_expression(node.args[0]))
        elif called == "plural":
            noun = node.args[1]
            for each in _of_expression(noun):
                yield f"{{count}} {each}", None
                yield f"{{count}} {each}s", None


def _of_expression(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may be, of a table those of its values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _of_expression(node.body)
        yield from _of_expression(node.orelse)
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for item in node.elts:
            yield from _of_expression(item)
    elif isinstance(node, ast.Dict):
        for item in node.values:
            yield from _of_expression(item)


def of_table(text: str, columns: tuple[str, ...]) -> list[str]:
    """The parts of an order are said one by one, and nothing where there is none."""
    head, *rows = (line.split("\t") for line in text.splitlines())
    cells = [row[head.index(column)] for column in columns for row in rows]
    return [part for cell in cells if not cell.startswith("none") for part in cell.split(", then ")]


def text_of(language: str) -> str:
    """The catalogue as it should be, with the translations that it has."""
    known = read(language) if _path(language).exists() else {}
    lines = []
    for file, sentences in said().items():
        lines.append(f"# {file}")
        lines += [f"{sentence}\t{known.get(sentence, '')}" for sentence in sentences]
    return "\n".join(lines) + "\n"


def _path(language: str) -> Path:
    return PACKAGE / "translations" / f"{language}.tsv"


def main() -> None:
    (language,) = sys.argv[1:]
    text = text_of(language)
    _path(language).write_text(text, encoding="utf-8")
    left = [line.removesuffix("\t") for line in text.splitlines() if line.endswith("\t")]
    print(f"{_path(language).relative_to(ROOT)}:", *left or ["complete"], sep="\n  ")


if __name__ == "__main__":
    main()

"""One device decision of a right program taken back: removed, frozen, or its result thrown away.

A mutant is the text of a notebook in which one such decision is wrong, and the place of the expression whose value
has gone astray. What is astray is not guessed from names: a `Marker` has the values recorded while the cell runs,
through IPython's `ast_transformers`, so that the text that the user (and ipydevice) sees stays as it is.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

FACTORIES = set(
    "zeros ones full arange linspace logspace eye rand randn randint randperm tensor empty hann_window".split()
)
LIKE = {"zeros_like": "zeros", "ones_like": "ones", "rand_like": "rand", "randn_like": "randn"}
CONTAINERS = ("ModuleList", "ParameterList")
DEVICE_WORDS = re.compile(r"\b(DEV2?|device\w*|dev\d?|card\w*|first|second)\b|\.device\b|cuda")
MARK = "_recorded_by_the_benchmark"


@dataclass(frozen=True)
class Mutant:
    kind: str  # "drop .to", "drop device=", "freeze", "unlike", ...: see _changes
    cell: int
    line: int  # 1-based, in the cell
    before: str  # the expression as it was
    after: str
    sources: dict[int, str]
    span: tuple[int, int]  # of the expression that goes astray, in characters of the mutated cell
    bound: str  # the names it is bound to, "" for none
    inside: str  # class and function around it, "Model.forward"

    @property
    def stray_text(self) -> str:
        return self.sources[self.cell][slice(*self.span)]


def mutants(sources: dict[int, str]) -> Iterator[Mutant]:
    """Every mutant of a notebook; cells with magics are left alone."""
    for cell, source in sources.items():
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        text = _Text(source)
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            for kind, site, new, stray in _changes(node, text, parents):
                start, end = text.span(site)
                mutated = source[:start] + new + source[end:]
                span = (start + stray[0], start + stray[1])
                yield Mutant(
                    kind,
                    cell,
                    source.count("\n", 0, start) + 1,
                    source[start:end],
                    new,
                    {**sources, cell: mutated},
                    span,
                    _bound(site, parents),
                    _inside(site, parents),
                )


class _Text:
    """Character offsets of nodes; ast counts columns in UTF-8 bytes."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: Any) -> tuple[int, int]:
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def of(self, node: ast.AST) -> str:
        return self.source[slice(*self.span(node))]


Change = tuple[str, ast.AST, str, tuple[int, int]]  # kind, node replaced, its new text, span of the stray in that text


def _changes(node: ast.AST, text: _Text, parents: dict[ast.AST, ast.AST]) -> Iterator[Change]:
    if not isinstance(node, ast.Call):
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if isinstance(node.func, ast.Attribute):
        receiver = text.of(node.func.value)
        if name == "to" and node.args and DEVICE_WORDS.search(text.of(node.args[0])):
            yield "drop .to", node, receiver, (0, len(receiver))
            statement = parents.get(node)
            if isinstance(statement, ast.Assign) and [text.of(t) for t in statement.targets] == [receiver]:
                yield "discard", statement, text.of(node), (0, len(receiver))
            if "device" in text.of(node.args[0]) or "DEV" in text.of(node.args[0]):
                frozen = f'{receiver}.to("cuda:1")'
                yield "freeze", node, frozen, (0, len(frozen))
        elif name in ("cuda", "cpu") and not node.args and not node.keywords:
            yield f"drop .{name}", node, receiver, (0, len(receiver))
        elif name in LIKE and len(node.args) == 1 and not node.keywords and receiver == "torch":
            new = f"torch.{LIKE[name]}({text.of(node.args[0])}.shape)"
            yield "unlike", node, new, (0, len(new))
        elif name == "register_buffer" and len(node.args) >= 2 and isinstance(node.args[0], ast.Constant):
            value = text.of(node.args[1])
            target = f"{receiver}.{node.args[0].value} = "
            if isinstance(parents.get(node), ast.Expr) and "\n" not in value:
                yield "unbuffer", node, target + value, (len(target), len(target) + len(value))
        if name in CONTAINERS and len(node.args) == 1:
            new = "list" + text.of(node).removeprefix(text.of(node.func))
            yield "list", node, new, (0, len(new))
        for keyword in node.keywords:
            kind = {"device": "drop device=", "map_location": "drop map_location"}.get(keyword.arg or "")
            if kind and (name in FACTORIES | {"load", "Generator"} or name.startswith("new_")):
                new = _without(node, keyword, text)
                yield kind, node, new, (0, len(new))


def _without(call: ast.Call, keyword: ast.keyword, text: _Text) -> str:
    """The call without one keyword argument, all else as it was written."""
    start, end = text.span(call)
    first, last = text.span(keyword)
    source = text.source
    before, after = source[start:first], source[last:end]
    shorter = re.sub(r",\s*$", "", before)
    if shorter == before:  # it was the first argument: the comma behind it goes instead
        after = re.sub(r"^\s*,\s*", "", after)
    return shorter + after


def _bound(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    while node in parents:
        if isinstance(node, ast.Assign):
            return ", ".join(map(ast.unparse, node.targets))
        if isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
            return ast.unparse(node.target)
        node = parents[node]
    return ""


def _inside(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    names: list[str] = []
    while node in parents:
        node = parents[node]
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            names.append(node.name)
    return ".".join(names[::-1])


class Marker(ast.NodeTransformer):
    """Records the values of the mutant's stray expression in the first run of its cell."""

    def __init__(self, mutant: Mutant, shell: Any) -> None:
        self.mutant, self.shell = mutant, shell
        self.recorded: list[Any] = []
        self.text = _Text(mutant.sources[mutant.cell])
        self.done = False
        setattr(builtins, MARK, self.record)
        shell.ast_transformers.append(self)

    def record(self, value: Any) -> Any:
        self.recorded.append(value)
        del self.recorded[:-100]
        return value

    def visit(self, node: ast.AST) -> ast.AST:
        here = self.shell.history_manager.input_hist_raw[-1] == self.mutant.sources[self.mutant.cell]
        if here and not self.done and isinstance(node, ast.expr) and self.text.span(node) == self.mutant.span:
            self.done = True
            call = ast.Call(ast.Name(MARK, ast.Load()), [node], [])
            return ast.fix_missing_locations(ast.copy_location(call, node))
        return self.generic_visit(node)

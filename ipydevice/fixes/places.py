"""Where syntax nodes stand in their text: 1-based lines, 0-based characters (ast counts UTF-8 bytes)."""

from __future__ import annotations

import ast
import tokenize

from ipydevice.diagnose.source import Source
from ipydevice.fixes.texts import ImpossibleError, split_lines, tokens_of

Place = tuple[int, int]  # line, character


class Places:
    """The places of one text's nodes."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.lines = split_lines(source.text)

    def text(self, line: int) -> str:
        return self.lines[line - 1]

    def column(self, line: int, utf8: int) -> int:
        return len(self.lines[line - 1].encode()[:utf8].decode(errors="ignore"))

    def start(self, node: ast.AST) -> tuple[int, int]:
        first: ast.AST = node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.decorator_list:
            first = node.decorator_list[0]
            return first.lineno, self.text(first.lineno).index("@")
        line = first.lineno  # type: ignore[attr-defined]
        return line, self.column(line, first.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> tuple[int, int]:
        line: int = node.end_lineno  # type: ignore[attr-defined]
        return line, self.column(line, node.end_col_offset)  # type: ignore[attr-defined]

    def span(self, node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
        return self.start(node), self.end(node)

    def between(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        if start[0] == end[0]:
            return self.text(start[0])[start[1] : end[1]]
        middle = self.lines[start[0] : end[0] - 1]
        return "\n".join([self.text(start[0])[start[1] :], *middle, self.text(end[0])[: end[1]]])

    def segment(self, node: ast.AST) -> str:
        """The node's text as it is written, line breaks and all."""
        return self.between(*self.span(node))

    def parentheses(
        self, node: ast.AST, start: tuple[int, int], end: tuple[int, int]
    ) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """The parentheses that group exactly this node on its lines, not those of a call."""
        line, last = self.text(start[0]), self.text(end[0])
        left = len(line[: start[1]].rstrip()) - 1
        right = end[1] + len(last[end[1] :]) - len(last[end[1] :].lstrip())
        if left < 0 or line[left] != "(" or right >= len(last) or last[right] != ")":
            return None
        # Two pairs cannot both be the call's: where the text without this pair still parses
        # to the same tree, or the pair is needed, it is a grouping.  A call's pair follows its function.
        parent = self._source.parent(node)
        if isinstance(parent, ast.Call) and node is not parent.func:
            function_end = self.end(parent.func)
            if not self.between(function_end, (start[0], left)).strip(" \t\n\\"):
                return None
        if isinstance(parent, ast.ClassDef):
            return None
        return (start[0], left), (end[0], right + 1)

    def argument_place(self, call: ast.Call, end: tuple[int, int], text: str) -> tuple[tuple[int, int], str]:
        """Where an argument goes: behind the last one, in front of a trailing comma."""
        start = self.end(call.func)
        tokens = tokens_of("(" + self.between(start, end) + ")")  # a pair around it lets it run over lines
        tokens = [t for t in tokens[1:-1] if t.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE)]
        if len(tokens) < 2 or tokens[-1].string != ")":
            raise ImpossibleError
        last = tokens[-2]
        if last.string == "(" and len(tokens) == 2:
            return self._token_place(start, last.end), text
        comma = last.string == ","
        place = self._token_place(start, (tokens[-3] if comma else last).end)
        arguments = [*call.args, *(k.value for k in call.keywords)]
        final = max(arguments, key=lambda a: (a.end_lineno or 0, a.end_col_offset or 0))
        named = next((k for k in call.keywords if k.value is final), None)
        line, column = self.start(named or final)
        leading = self.text(line)[:column]
        if leading.strip() or self.text(end[0])[: end[1] - 1].strip():
            return place, f", {text}"
        # One argument a line: so stands the new one, below the comment of the last.
        if comma:
            below = self._token_place(start, last.end)[0]
            return (below, len(self.text(below))), f"\n{leading}{text},"
        return place, f",\n{leading}{text}"

    @staticmethod
    def _token_place(start: tuple[int, int], at: tuple[int, int]) -> tuple[int, int]:
        line, column = at
        return (start[0] + line - 1, column - 1 + start[1]) if line == 1 else (start[0] + line - 1, column)

    def on_the_header(self, statement: ast.stmt) -> bool:
        """True for the body in ``for x in xs: body``."""
        parent = self._source.parent(statement)
        if parent is None or isinstance(parent, ast.Module):
            return False
        for _, block in ast.iter_fields(parent):
            if isinstance(block, list) and statement in block:
                line, column = self.start(block[0])
                return bool(self.text(line)[:column].strip())
        return False

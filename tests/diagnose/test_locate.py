"""The node that was running, found in programs that really fail."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from failing import expression, frames_of, raised_by

from ipydevice.diagnose.locate import cut_out, operands, running, store_statement
from ipydevice.diagnose.source import Source


class Odd:
    """Fails at whatever is done with it, but for attributes: they are odd too."""

    def _fails(self, *args: Any, **kwargs: Any) -> Any:
        raise ArithmeticError("odd")

    def __getattr__(self, name: str) -> Odd:
        if name.startswith("__"):
            raise AttributeError(name)
        return Odd()

    def even(self, *args: Any, **kwargs: Any) -> Odd:
        return self

    __call__ = __add__ = __radd__ = __mul__ = __rmul__ = __matmul__ = __iadd__ = __imul__ = __sub__ = __lt__ = _fails
    __getitem__ = __setitem__ = __bool__ = __neg__ = __invert__ = __eq__ = __iter__ = __enter__ = __len__ = _fails
    __contains__ = __format__ = __index__ = __delitem__ = __str__ = __gt__ = __pow__ = _fails  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __exit__(self, *args: object) -> None: ...


class Sets:
    """Fails where an attribute is set."""

    def __setattr__(self, name: str, value: object) -> None:
        raise ArithmeticError("odd")


NAMES = {"Odd": Odd, "a": Odd(), "b": 3, "f": Odd(), "s": Sets(), "d": {"k": Odd()}, "xs": [1, 2], "odd": Odd()}


def located(path: Path, text: str) -> str:
    error = raised_by(path, text, dict(NAMES))
    frame = [frame for frame in frames_of(error) if frame.file == str(path)][-1]
    assert frame.source is not None
    assert frame.node is not None
    return frame.source.segment(store_statement(frame.source, frame.node))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # calls and operators: exactly the failing one of several in a line
        ("f(3)", "f(3)"),
        ("x = f(3)", "f(3)"),
        ("x = max(1, f(3))", "f(3)"),
        ("x = a + b", "a + b"),
        ("x = (b + b) * (b - b) + a * b", "a * b"),
        ("x = b + b + (a @ b)", "a @ b"),
        ("x = -a", "-a"),
        ("x = ~a", "~a"),
        ("x = a < b", "a < b"),
        ("x = b == b and a < b", "a < b"),
        ("x = a == b", "a == b"),
        ("x = a ** 2", "a ** 2"),
        ("x = a[0]", "a[0]"),
        ("x = a[1:2, ...]", "a[1:2, ...]"),
        ("x = xs[a]", "xs[a]"),
        ("x = b in a", "b in a"),
        ("x = not a", "not a"),
        ("x = d['k'][0]", "d['k'][0]"),
        ("x = d['k'].up(3)", "d['k'].up(3)"),
        ("x = a.b.c(1).d", "a.b.c(1)"),
        ("x = b; y = a + b; z = 1", "a + b"),
        ("x = b; f(1); f(2)", "f(1)"),
        ("if b: x = b; y = f(1)", "f(1)"),
        # several lines
        ("x = (a\n     .even(1)\n     .odd(2)\n     .even(3))", "a .even(1) .odd(2)"),
        ("x = a.even(\n    1,\n).even(2).odd(\n    3,\n)", "a.even( 1, ).even(2).odd( 3, )"),
        ("x = (b\n     + b\n     + a)", "b + b + a"),
        ("x = f(\n    1,\n    2,\n)", "f( 1, 2, )"),
        ("x = max(\n    1,\n    f(2),\n)", "f(2)"),
        ("x = b + \\\n    f(1)", "f(1)"),
        # stores: the whole assignment
        ("a[0] = 1", "a[0] = 1"),
        ("a[0], x = 1, 2", "a[0], x = 1, 2"),
        ("x, (y, a[0]) = 1, (2, 3)", "x, (y, a[0]) = 1, (2, 3)"),
        ("x = a[0] = 1", "x = a[0] = 1"),
        ("d['k'][b] = 1", "d['k'][b] = 1"),
        ("s.grad = 1", "s.grad = 1"),
        ("s.x: int = 1", "s.x: int = 1"),
        ("a += 1", "a += 1"),
        ("a *= b", "a *= b"),
        ("d['k'] += b", "d['k'] += b"),
        ("a.part += b", "a.part += b"),
        ("x, y = a", "x, y = a"),
        ("[x, *y] = a", "[x, *y] = a"),
        ("del a[0]", "a[0]"),
        ("for x in f(1): pass", "f(1)"),
        ("f(*xs, **{'k': 1})", "f(*xs, **{'k': 1})"),
        ("with f(1) as x: pass", "f(1)"),
        # places of their own
        ("x = [a + i for i in xs]", "a + i"),
        ("x = {i: a * i for i in xs}", "a * i"),
        ("x = {f(i) for i in xs}", "f(i)"),
        ("x = list(a[i] for i in xs)", "a[i]"),
        ("x = [i for i in xs if a < i]", "a < i"),
        ("x = (lambda y: a + y)(1)", "a + y"),
        ("g = lambda y: y; h = lambda y: f(y); h(1)", "f(y)"),
        ("@f\ndef g(): pass", "f"),
        ("@f(1)\ndef g(): pass", "f(1)"),
        ("@f(1)\nclass G: pass", "f(1)"),
        ("class G:\n    x = f(1)", "f(1)"),
        ("def g(x=f(1)): pass", "f(1)"),
        ("def g():\n    return a + b\ng()", "a + b"),
        ("def g():\n    yield a + b\nlist(g())", "a + b"),
        ("x = f'{b} {a + b}'", "a + b"),
        ("x = f'{b} {f(1)!r:>3}'", "f(1)"),
        ("x = (y := f(1))", "f(1)"),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    f(1)", "f(1)"),
        ("try:\n    pass\nfinally:\n    x = a + 1", "a + 1"),
        ("raise f(1)", "f(1)"),
        # columns count bytes, texts count characters
        ("x = 'Größe', a + b", "a + b"),
        ("größe = b; x = größe + a", "größe + a"),
        ("ä = 'ö'; x = (ä, f('ü'))", "f('ü')"),
        ("x = ['😀', '😀', a[0]]", "a[0]"),
        ("x = {'ключ': a * b}", "a * b"),
        ("x = '日本'; a[0] = '日本'", "a[0] = '日本'"),
        ("\tx = a + b".strip("\t"), "a + b"),
        ("if b:\n\tx = a + b", "a + b"),
        ("x = b # a + b\ny = a + 1", "a + 1"),
    ],
)
def test_the_exact_node(tmp_path: Path, text: str, wanted: str) -> None:
    assert located(tmp_path / "program.py", text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted", "role"),
    [
        ("if a: pass", "if a: pass", "test"),
        ("if b < 0:\n    pass\nelif a: pass", "elif a: pass", "test"),
        ("while a: pass", "while a: pass", "test"),
        ("assert a, 'no'", "assert a, 'no'", "test"),
        ("x = b if a else 2", "b if a else 2", "test"),
        ("x = b and a and b", "b and a and b", "value"),
        ("for x in a: pass", "for x in a: pass", "value"),
        ("x = [*a]", "[*a]", "value"),
        ("with a: pass", "with a: pass", "value"),
    ],
)
def test_what_is_tested_or_iterated(tmp_path: Path, text: str, wanted: str, role: str) -> None:
    """Python reports the statement up to 3.11 and what is tested since; `a` takes part in both."""
    error = raised_by(tmp_path / "program.py", text, dict(NAMES))
    frame = [frame for frame in frames_of(error) if frame.file == str(tmp_path / "program.py")][-1]
    assert frame.source is not None
    assert frame.node is not None
    assert frame.source.segment(frame.node) in (wanted, "a")
    roles = {ast.unparse(node): found for node, found in operands(frame.node)}
    assert roles.get("a", roles.get("*a")) in (role, "value")


NO_RANGES = textwrap.dedent(
    """
    import sys
    sys.path[:0] = sys.argv[1:]
    import linecache
    from ipydevice.cells import CellHistory
    from ipydevice.diagnose.frames import Sources, collect
    text = "x = 1\\nif x:\\n    y = (1 +\\n         [])\\nz = 2"
    open("program.py", "w").write(text)
    try:
        exec(compile(text, "program.py", "exec"))
    except TypeError as error:
        frame = collect(error.__traceback__, Sources(CellHistory()))[-1]
    print(frame.span, frame.source.segment(frame.node))
    """
)


@pytest.mark.parametrize("switch", ["environment", "option"])
def test_without_columns_the_statement(tmp_path: Path, switch: str) -> None:
    script = tmp_path / "look.py"
    script.write_text(NO_RANGES)
    options = ["-X", "no_debug_ranges"] if switch == "option" else []
    environment = {**os.environ, "PYTHONNODEBUGRANGES": "1" if switch == "environment" else ""}
    run = subprocess.run(
        [sys.executable, *options, str(script), str(Path(__file__).parents[2])],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert run.stdout.strip() == "None y = (1 + [])", run.stderr


@pytest.mark.parametrize(
    ("text", "line", "wanted"),
    [
        ("a = 1\nb = 2", 2, "b = 2"),
        ("for i in x:\n    a = i\n    b = i", 3, "b = i"),
        ("def g():\n    return 1", 2, "return 1"),
        ("a = [\n    1,\n    2,\n]", 3, "a = [ 1, 2, ]"),
        ("a = 1", 9, None),
        ("", 1, None),
        ("a = (", 1, None),
    ],
)
def test_by_the_line_alone(text: str, line: int, wanted: str | None) -> None:
    source = Source(text)
    node = running(source, line, None)
    assert (source.segment(node) if node is not None else None) == wanted


def test_a_span_that_fits_nothing() -> None:
    source = Source("a = 1\nb = f(2)")
    for span in ((2, 2, 5, 8), (2, 2, 4, 6)):  # "(2)" and "f(" belong to the call
        around = running(source, 2, span)
        assert around is not None and source.segment(around) == "f(2)"
    beyond = running(source, 2, (7, 7, 0, 3))
    assert beyond is not None and source.segment(beyond) == "b = f(2)"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a + b", "a left, b right"),
        ("a < b < c", "a left, b right, c right"),
        ("-a", "a value"),
        ("a and b", "a value, b value"),
        ("f(a, 1, k=b)", "f callee, a 0, 1 1, b k"),
        ("a.f(b, *c, **d)", "a receiver, a.f callee, b 0, *c 1, d **"),
        ("a[i]", "a value, i index"),
        ("a[i, 1:2, j]", "a value, i index, j index"),
        ("a[0]", "a value"),
        ("a.b", "a receiver"),
        ("(a, b)", "a value, b value"),
        ("a", "a value"),
        ("a if t else b", "t test"),
        ("(x := a)", "a value"),
    ],
)
def test_operands_of_expressions(text: str, wanted: str) -> None:
    assert ", ".join(f"{ast.unparse(node)} {role}" for node, role in operands(expression(text))) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a += b", "a target, b value"),
        ("a[i] = b", "a target, i index, b value"),
        ("a[i, j] = b", "a target, i index, j index, b value"),
        ("p.grad = g", "p target, g value"),
        ("p.grad: int = g", "p target, g value"),
        ("p.grad: int", ""),
        ("x = y = b", "b value"),
        ("(a[i], p.q) = b", "a target, i index, p target, b value"),
        ("if t: pass", "t test"),
        ("while t: pass", "t test"),
        ("assert t", "t test"),
        ("for x in a: pass", "a value"),
        ("def f(): return a", ""),
        ("a", "a value"),
        ("pass", ""),
        ("with a as b, c: pass", "a value, c value"),
        ("[a, *b]", "[a, *b] value"),
        ("return a", "a value"),
        ("del a[i]", ""),
    ],
)
def test_operands_of_statements(text: str, wanted: str) -> None:
    statement = ast.parse(text).body[0]
    assert ", ".join(f"{ast.unparse(node)} {role}" for node, role in operands(statement)) == wanted


def test_operands_of_nothing() -> None:
    assert operands(None) == []


def test_of_a_library_only_the_running_expression_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    parsed: list[str] = []
    parse = ast.parse
    monkeypatch.setattr(ast, "parse", lambda text, *args, **kwargs: parsed.append(text) or parse(text, *args, **kwargs))
    try:
        json.loads("{")
    except ValueError as error:
        from ipydevice.cells import CellHistory
        from ipydevice.diagnose.frames import Sources, collect

        frames = collect(error.__traceback__, Sources(CellHistory()))
    found = [ast.unparse(frame.node) for frame in frames if not frame.is_user and frame.node is not None]
    assert found[0] == "_default_decoder.decode(s)"
    assert max(len(text) for text in parsed if "_default_decoder" in text) < 60


def test_cutting_out_of_what_is_not_there() -> None:
    assert cut_out("nowhere.py", (1, 1, 0, 3), {}) is None
    assert cut_out("nowhere.py", None, {}) is None


def test_cutting_out(tmp_path: Path) -> None:
    file = tmp_path / "library.py"
    file.write_text("def f():\n    return max(\n        'ä', g(x,\n          y),\n    )\n    del (a\n        )[0]\n")
    lines = file.read_text().splitlines()
    start = len(lines[2][: lines[2].index("g(")].encode())
    node = cut_out(str(file), (3, 4, start, 12), {})
    assert node is not None and ast.unparse(node) == "g(x, y)"
    assert cut_out(str(file), (2, 2, 4, 15), {}) is None  # `return max(` parses nowhere

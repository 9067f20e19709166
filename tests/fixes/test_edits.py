"""Text edits by syntax node: odd formatting survives, and nothing but the intended change happens."""

from __future__ import annotations

import ast

import pytest

from ipydevice.diagnose.source import Source
from ipydevice.fixes.edits import Draft


def node(source: Source, text: str, kind: type[ast.AST] = ast.expr) -> ast.AST:
    """The first node of the kind that is written so, in a place where it is read."""
    for found in ast.walk(source.tree):
        is_read = not isinstance(getattr(found, "ctx", None), ast.Store)
        if isinstance(found, kind) and source.segment(found) == text and is_read:
            return found
    raise AssertionError(f"{text!r} is not in {source.text!r}")


def after(draft: Draft) -> str | None:
    edit = draft.edit
    return None if edit is None else edit.after


@pytest.mark.parametrize(
    ("text", "what", "expected"),
    [
        ("y = f( x )", "x", "y = f( x.to(d) )"),
        ("y = f(a + b)", "a + b", "y = f((a + b).to(d))"),
        ("y = g((a + b), 1)", "a + b", "y = g((a + b).to(d), 1)"),
        ("y = (a\n     + b)  # sum", "a\n     + b", "y = (a\n     + b).to(d)  # sum"),
        ("y = -x", "-x", "y = (-x).to(d)"),
        ("y = a if q else b", "a if q else b", "y = (a if q else b).to(d)"),
        ("y = lambda: x", "x", "y = lambda: x.to(d)"),
        ("s = 'é☃'; y = f('ü', x)", "x", "s = 'é☃'; y = f('ü', x.to(d))"),
        ("größe = f(größe)", "größe", "größe = f(größe.to(d))"),
        ("if q:\n\ty = f(x)\t# tab", "x", "if q:\n\ty = f(x.to(d))\t# tab"),
        ("y = f(a, \\\n      x)", "x", "y = f(a, \\\n      x.to(d))"),
        ("a = 1; y = f(x); b = 2", "x", "a = 1; y = f(x.to(d)); b = 2"),
        ("for i in r: y = f(x)", "x", "for i in r: y = f(x.to(d))"),
        ("z = [f(x) for q in qs]", "x", "z = [f(x.to(d)) for q in qs]"),
        ("y = f(x[..., :1])", "x[..., :1]", "y = f(x[..., :1].to(d))"),
        ("y = '''a\nb''', f(x)", "x", "y = '''a\nb''', f(x.to(d))"),
        ("y = f(*xs, **x)", "x", "y = f(*xs, **x.to(d))"),
        ("y = f((yield_ or x))", "yield_ or x", "y = f((yield_ or x).to(d))"),
        ("y = (x)", "x", "y = (x.to(d))"),
        ("y = f(x)(x)", "f(x)", "y = f(x).to(d)(x)"),
        ("y = f(x)\r\nz = 1\r\n", "x", "y = f(x.to(d))\r\nz = 1\r\n"),
        ("\x0c\ny = f(x)", "x", "\x0c\ny = f(x.to(d))"),
    ],
)
def test_suffix(text: str, what: str, expected: str) -> None:
    source = Source(text)
    wanted = " ".join(line.strip() for line in what.splitlines())
    found = node(source, wanted)
    assert isinstance(found, ast.expr)
    assert after(Draft(source).suffix(found, ".to(d)")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()", "f(device=d)"),
        ("f( )", "f(device=d )"),
        ("f(3)", "f(3, device=d)"),
        ("f(g(3), 4,)", "f(g(3), 4, device=d,)"),
        ("f(3, # three\n  4)", "f(3, # three\n  4, device=d)"),
        ("f(\n    3,  # three\n    k=4,  # four\n)", "f(\n    3,  # three\n    k=4,  # four\n    device=d,\n)"),
        ("f(\n    3,\n    k=4\n)", "f(\n    3,\n    k=4,\n    device=d\n)"),
        ("f(\n\t3)", "f(\n\t3, device=d)"),
        ("f((a, b))", "f((a, b), device=d)"),
        ("f(('é'))", "f(('é'), device=d)"),
        ("f(*a, **k)", "f(*a, **k, device=d)"),
        ("f('),(', \")\")", "f('),(', \")\", device=d)"),
        ("f(3, device='cuda')", "f(3, device=d)"),
        ("f(3, device=None, dtype=t)", "f(3, device=d, dtype=t)"),
        ("f (3)", "f (3, device=d)"),
        ("a.b[0].f(\n  3\n)", "a.b[0].f(\n  3,\n  device=d\n)"),
        ("f(x for x in y)", None),  # needs parentheses of its own: refused rather than guessed
    ],
)
def test_keyword(text: str, expected: str | None) -> None:
    source = Source(text)
    call = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Call))
    assert after(Draft(source).keyword(call, "device", "d")) == expected


@pytest.mark.parametrize(
    ("text", "above", "below"),
    [
        ("a = 1", "z = 3\na = 1", "a = 1\nz = 3"),
        ("a = 1; b = 2", "z = 3\na = 1; b = 2", "a = 1; z = 3; b = 2"),
        ("b = 2; a = 1", "b = 2; z = 3; a = 1", "b = 2; a = 1\nz = 3"),
        ("a = 1;", "z = 3\na = 1;", "a = 1;\nz = 3"),
        ("a = 1  # why\n", "z = 3\na = 1  # why\n", "a = 1  # why\nz = 3\n"),
        ("if q: a = 1", "if q: z = 3; a = 1", "if q: a = 1; z = 3"),
        ("if q:\n\ta = 1 # c\n", "if q:\n\tz = 3\n\ta = 1 # c\n", "if q:\n\ta = 1 # c\n\tz = 3\n"),
        ("for i in l: a = 1; c = 3", "for i in l: z = 3; a = 1; c = 3", "for i in l: a = 1; z = 3; c = 3"),
        ("a = '''\nx'''\nb = 1", "z = 3\na = '''\nx'''\nb = 1", "a = '''\nx'''\nz = 3\nb = 1"),
        ("a = f(1,\n      2)", "z = 3\na = f(1,\n      2)", "a = f(1,\n      2)\nz = 3"),
        (
            "try:\n  a = 1\nfinally: pass",
            "try:\n  z = 3\n  a = 1\nfinally: pass",
            "try:\n  a = 1\n  z = 3\nfinally: pass",
        ),
    ],
)
def test_statement_beside_another(text: str, above: str, below: str) -> None:
    source = Source(text)
    statement = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Assign) and source.segment(n)[0] == "a")
    assert after(Draft(source).before(statement, "z = 3")) == above
    assert after(Draft(source).after(statement, "z = 3")) == below


def test_above_an_elif_is_above_its_if() -> None:
    source = Source("if p:\n    a\nelif q:\n    b")
    inner = source.tree.body[0].orelse[0]  # type: ignore[attr-defined]
    assert after(Draft(source).before(inner, "z = 3")) == "z = 3\nif p:\n    a\nelif q:\n    b"


def test_above_a_decorated_function_is_above_its_decorator() -> None:
    source = Source("@deco\ndef f(): pass")
    assert after(Draft(source).before(source.tree.body[0], "z = 3")) == "z = 3\n@deco\ndef f(): pass"


def test_several_lines_do_not_fit_into_one() -> None:
    source = Source("if q: a = 1")
    inner = source.tree.body[0].body[0]  # type: ignore[attr-defined]
    assert after(Draft(source).after(inner, "for i in z:\n    pass")) is None


def test_top_of_a_function_is_below_its_docstring() -> None:
    source = Source('def f(x):\n    """Doc."""\n    return x')
    body = source.tree.body[0].body  # type: ignore[attr-defined]
    assert after(Draft(source).top_of(body, "x = 1")) == 'def f(x):\n    """Doc."""\n    x = 1\n    return x'


def test_replacing_a_statement_keeps_its_comment() -> None:
    source = Source("class A:\n    def __init__(self):\n        self.pe = pe[None]  # (1, n, d)\n")
    statement = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Assign))
    edited = after(Draft(source).replace_statement(statement, 'self.register_buffer("pe", pe[None])'))
    assert edited == source.text.replace("self.pe = pe[None]", 'self.register_buffer("pe", pe[None])')


def test_removing_a_statement_takes_its_line() -> None:
    source = Source("a = 1\nb = 2  # gone\nc = 3")
    assert after(Draft(source).remove(source.tree.body[1])) == "a = 1\nc = 3"


def test_changes_nest() -> None:
    source = Source("y = f(g(3), x)")
    outer = node(source, "f(g(3), x)")
    inner = node(source, "g(3)")
    draft = Draft(source).keyword(inner, "device", "d").suffix(node(source, "x"), ".to(d)").suffix(outer, ".to(e)")
    assert after(draft) == "y = f(g(3, device=d), x.to(d)).to(e)"


# -- cells are not what they compile to ------------------------------------------------------------


def test_magics_stay_as_they_are() -> None:
    raw = "%matplotlib inline\n!ls\ny = f(x)\nz?"
    compiled = (
        "get_ipython().run_line_magic('matplotlib', 'inline')\nget_ipython().system('ls')\ny = f(x)\n"
        "get_ipython().run_line_magic('pinfo', 'z')\n"
    )
    source = Source(compiled, raw)
    assert after(Draft(source).suffix(node(source, "x"), ".to(d)")) == raw.replace("f(x)", "f(x.to(d))")


def test_magics_over_several_lines_shift_the_rest() -> None:
    raw = "%timeit f(1, \\\n   2)\nif q:\n    y = f(x)"
    compiled = "get_ipython().run_line_magic('timeit', 'f(1,    2)')\nif q:\n    y = f(x)\n"
    source = Source(compiled, raw)
    call = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Assign))
    assert after(Draft(source).before(call, "x = x.to(d)")) == raw.replace("    y", "    x = x.to(d)\n    y")


def test_below_a_cell_magic() -> None:
    raw = "%%time\ny = f(x)"
    source = Source("y = f(x)", raw, shift=1)
    assert after(Draft(source).suffix(node(source, "x"), ".to(d)")) == "%%time\ny = f(x.to(d))"


def test_an_indented_cell_keeps_its_indentation() -> None:
    raw = "  y = f(x)\n  z = 1"
    source = Source("y = f(x)\nz = 1", raw)
    statement = source.tree.body[0]
    assert after(Draft(source).before(statement, "x = 2")) == "  x = 2\n  y = f(x)\n  z = 1"


def test_nothing_is_written_into_a_magic() -> None:
    source = Source("y = get_ipython().getoutput('ls')", "y = !ls")
    assert after(Draft(source).suffix(node(source, "get_ipython().getoutput('ls')"), ".to(d)")) is None


def test_an_edit_that_would_not_compile_is_none() -> None:
    source = Source("y = f(x)")
    assert after(Draft(source).before(source.tree.body[0], "return 1")) is None


def test_top_level_await_compiles() -> None:
    source = Source("y = await f(x)")
    assert after(Draft(source).suffix(node(source, "x"), ".to(d)")) == "y = await f(x.to(d))"


def test_no_change_is_no_edit() -> None:
    assert Draft(Source("y = f(x)")).edit is None

"""Where names, attributes and items get their values, by syntax alone."""

from __future__ import annotations

import ast

import pytest
from failing import expression

from ipydevice.diagnose import bindings
from ipydevice.diagnose.bindings import Binding
from ipydevice.diagnose.source import FunctionNode, Source


def told(found: list[Binding]) -> str:
    """``assignment 1 f(2)[0]``: how, the line, the value and which element of it."""
    return "; ".join(
        f"{b.how} {b.line}"
        + (f" {ast.unparse(b.value)}" if b.value is not None else "")
        + (f" #{b.part}" if b.part is not None else "")
        for b in found
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = 1", "assignment 1 1"),
        ("x = 1\nx = 2", "assignment 1 1; assignment 2 2"),
        ("x: int = 1", "assignment 1 1"),
        ("x: int", ""),
        ("x += 1", "assignment 1 1"),
        ("y = x = f()", "assignment 1 f()"),
        ("x, y = 1, 2", "assignment 1 1"),
        ("y, x = 1, 2", "assignment 1 2"),
        ("x, y = f()", "assignment 1 f() #0"),
        ("y, x = f()", "assignment 1 f() #1"),
        ("y, *x = f()", "assignment 1 f() #1"),
        ("y, (z, x) = f()", "assignment 1 f() #1"),
        ("y, (z, x) = 1, (2, 3)", "assignment 1 3"),
        ("[y, x] = 1, 2", "assignment 1 2"),
        ("for x in xs: pass", "loop 1 xs"),
        ("for i, x in enumerate(xs): pass", "loop 1 enumerate(xs) #1"),
        ("for i, (y, x) in enumerate(xs): pass", "loop 1 enumerate(xs) #1"),
        ("for i in xs:\n    x = i", "assignment 2 i"),
        ("while True:\n    x = 1\n    break", "assignment 2 1"),
        ("with f() as x: pass", "with 1 f()"),
        ("with f() as y, g() as x: pass", "with 1 g()"),
        ("with f() as (y, x): pass", "with 1 f() #1"),
        ("if a:\n    x = 1\nelse:\n    x = 2", "assignment 2 1; assignment 4 2"),
        (
            "try:\n    x = 1\nexcept E:\n    x = 2\nfinally:\n    x = 3",
            "assignment 2 1; assignment 4 2; assignment 6 3",
        ),
        ("f(x := 3)", "assignment 1 3"),
        ("if (x := f()): pass", "assignment 1 f()"),
        ("import x", "import 1"),
        ("import x.y", "import 1"),
        ("import y as x", "import 1"),
        ("from y import x", "import 1"),
        ("from y import z as x", "import 1"),
        ("from x import y", ""),
        ("def x(): pass", "define 1"),
        ("async def x(): pass", "define 1"),
        ("class x: pass", "define 1"),
        ("def f():\n    x = 1", ""),
        ("class C:\n    x = 1", ""),
        ("g = lambda: (x := 1)", ""),
        ("y = [x for x in xs]", ""),
        ("x.y = 1", ""),
        ("x[0] = 1", ""),
        ("y = x", ""),
        ("del x", ""),
        ("", ""),
    ],
)
def test_of_name(text: str, wanted: str) -> None:
    assert told(bindings.of_name(ast.parse(text), "x")) == wanted


def test_of_name_in_a_function() -> None:
    tree = ast.parse("x = 0\ndef f(a):\n    x = a\n    def g():\n        x = 3\n    return x")
    assert told(bindings.of_name(tree.body[1], "x")) == "assignment 3 a"
    assert told(bindings.of_name(tree, "g")) == ""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[x for x in xs]", "loop 1 xs"),
        ("[x for y in ys for x in y]", "loop 1 y"),
        ("{k: x for k, x in d.items()}", "loop 1 d.items() #1"),
        ("(x for x in xs if x)", "loop 1 xs"),
        ("[y for y in x]", ""),
    ],
)
def test_of_comprehension(text: str, wanted: str) -> None:
    found = bindings.of_comprehension(expression(text), "x")  # type: ignore[arg-type]
    assert told([found] if found is not None else []) == wanted


IN_METHODS = """
class C:
    x = 1
    y: int = 2
    def __init__(self, w):
        self.x = w
        self.a, self.b = f()
        self.d = {}
        self.register_buffer("buf", g(w))
        self.register_parameter(name, w)
        setattr(self, "late", w)
        self.__setattr__("later", w)
        other.x = 5
        self.add_module("layer", Linear(3))
        def inner():
            self.hidden = 1
    def call(me):
        me.x += 2
        me.d["k"] = 3
        me.d.update(k=4)
        me.d.update({"k": 5})
        me.xs.append(6)
        me.xs.extend(zs)
        for me.i in range(3): pass
        with open() as me.file: pass
        self.x = "not me"
    async def later(self):
        self.x = await f()
    @staticmethod
    def none():
        pass
"""


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("x", "assignment 3 1; assignment 6 w; assignment 18 2; assignment 28 await f()"),
        ("y", "assignment 4 2"),
        ("a", "assignment 7 f() #0"),
        ("b", "assignment 7 f() #1"),
        ("d", "assignment 8 {}; assignment 19 3; item 21 {'k': 5}"),
        ("buf", "item 9 g(w)"),
        ("late", "assignment 11 w"),
        ("later", "item 12 w"),
        ("layer", "item 14 Linear(3)"),
        ("xs", "item 22 6; item 23 zs"),
        ("i", "loop 24 range(3)"),
        ("file", "with 25 open()"),
        ("hidden", ""),
        ("nothing", ""),
    ],
)
def test_of_attribute(name: str, wanted: str) -> None:
    cls = ast.parse(IN_METHODS).body[0]
    assert isinstance(cls, ast.ClassDef)
    found = bindings.of_attribute(cls, name)
    assert told(found) == wanted
    assert all(b.method is not None or b.line <= 4 for b in found)


@pytest.mark.parametrize(
    ("text", "target", "wanted"),
    [
        ("a.b = 1", "a.b", "assignment 1 1"),
        ("d['k'] = 1", "d['k']", "assignment 1 1"),
        ('d["k"] = 1', "d['k']", "assignment 1 1"),
        ("d[ 'k' ], y = 1, 2", "d['k']", "assignment 1 1"),
        ("d['k'] += 1", "d['k']", "assignment 1 1"),
        ("d['j'] = 1", "d['k']", ""),
        ("a.b.append(x)", "a.b", "item 1 x"),
        ("for a.b in xs: pass", "a.b", "loop 1 xs"),
        ("def f():\n    a.b = 1", "a.b", ""),
    ],
)
def test_of_target(text: str, target: str, wanted: str) -> None:
    assert told(bindings.of_target(ast.parse(text), target)) == wanted


def function(text: str) -> FunctionNode:
    found = ast.parse(text).body[0]
    if isinstance(found, ast.Expr):
        found = found.value  # type: ignore[assignment]
    assert isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    return found


EVERY_KIND = "def f(a, b, /, c=1, *args, d, e=2, **kw): return c"


def test_parameters_and_defaults() -> None:
    f = function(EVERY_KIND)
    assert bindings.parameters(f) == ["a", "b", "c", "d", "e", "args", "kw"]
    told = {name: bindings.default_of(f, name) for name in bindings.parameters(f)}
    assert {name: ast.unparse(node) for name, node in told.items() if node is not None} == {"c": "1", "e": "2"}
    assert bindings.parameters(function("lambda x, y=3: x")) == ["x", "y"]


@pytest.mark.parametrize(
    ("call", "name", "bound", "wanted"),
    [
        ("f(1, 2, 3)", "a", False, "1"),
        ("f(1, 2, 3)", "c", False, "3"),
        ("f(1, 2)", "c", False, None),
        ("f(1, 2, c=3)", "c", False, "3"),
        ("f(1, 2, d=3)", "d", False, "3"),
        ("f(1, 2, e=3)", "e", False, "3"),
        ("o.f(1, 2)", "b", True, "1"),
        ("o.f(1, 2)", "c", True, "2"),
        ("o.f(1, 2)", "a", True, None),
        ("f(*xs)", "a", False, None),
        ("f(1, *xs)", "a", False, "1"),
        ("f(1, *xs)", "b", False, None),
        ("f(1, *xs, 3)", "c", False, None),
        ("f(**kw)", "c", False, None),
        ("f(1, 2, 3, 4, 5)", "args", False, None),
    ],
)
def test_argument_for(call: str, name: str, bound: bool, wanted: str | None) -> None:
    node = expression(call)
    assert isinstance(node, ast.Call)
    found = bindings.argument_for(node, function(EVERY_KIND), name, bound)
    assert (ast.unparse(found) if found is not None else None) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("def f():\n    return 1", ["1"]),
        ("def f():\n    if a: return 1\n    return 2", ["1", "2"]),
        ("def f():\n    yield 1\n    yield 2", ["1", "2"]),
        ("def f():\n    def g(): return 1\n    return g", ["g"]),
        ("def f():\n    return", []),
        ("lambda: 3", ["3"]),
        ("async def f():\n    return await g()", ["await g()"]),
    ],
)
def test_returns(text: str, wanted: list[str]) -> None:
    assert [ast.unparse(node) for node in bindings.returns(function(text))] == wanted


def test_calls_in_text_order() -> None:
    tree = ast.parse("f(f(1))\ndef g():\n    o.f(2)\n[f(i) for i in x]\nf\nff(3)")
    assert [ast.unparse(call) for call in bindings.calls(tree, "f")] == ["f(f(1))", "f(1)", "o.f(2)", "f(i)"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x = 1\nUSE(x)", 1),
        ("x = 1\nx = 2\nUSE(x)\nx = 3", 2),
        ("x = 1\nfor x in xs:\n    USE(x)", 2),
        ("x = 1\nfor i in xs:\n    USE(x)\n    x = 2", 1),
        ("for i in xs:\n    USE(x)\n    x = 2", 3),
        ("while a:\n    USE(x)\n    x = 2", 3),
        ("USE(x)\nx = 2", None),
        ("for x in xs:\n    x = x.to(d)\n    USE(x)", 2),
        ("with f() as x:\n    USE(x)", 1),
        ("x = 1\nx = USE(x)", 1),
        ("x = 1\nfor x in USE(x): pass", 1),
        ("x = 1\nif a:\n    x = 2\nUSE(x)", 3),
        ("x = 1; x = 2; USE(x)", 1),
    ],
)
def test_the_binding_in_force(text: str, wanted: int | None) -> None:
    source = Source(text)
    use = next(
        node.args[0]
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "USE"
    )
    found = bindings.latest(bindings.of_name(source.tree, "x"), source, use)
    assert (found.line if found is not None else None) == wanted


def test_the_binding_of_several_in_one_line() -> None:
    source = Source("x = 1; y = x; x = 2")
    use = source.tree.body[1].value  # type: ignore[attr-defined]
    found = bindings.latest(bindings.of_name(source.tree, "x"), source, use)
    assert told([found] if found is not None else []) == "assignment 1 1"


def test_an_augmented_assignment_uses_what_was_before() -> None:
    source = Source("x = 1\nx += 2")
    target = source.tree.body[1].target  # type: ignore[attr-defined]
    found = bindings.latest(bindings.of_name(source.tree, "x"), source, target)
    assert told([found] if found is not None else []) == "assignment 1 1"

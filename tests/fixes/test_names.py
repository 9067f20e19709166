"""Which names code binds and reads, and trees that are equal: told once for each node, and forgotten with it."""

from __future__ import annotations

import ast
import gc
import weakref

import pytest

from ipydevice.fixes.names import bound, free, own_nodes, read, same


def body(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def test_own_nodes_stand_in_the_order_of_the_text() -> None:
    text = "a = [b, lambda c=d: e]\n@f\ndef g(h=i):\n    j\nk"
    names = [node.id for node in own_nodes(body(text)) if isinstance(node, ast.Name)]
    assert names == ["a", "b", "d", "f", "i", "k"]


def test_names_of_several_statements() -> None:
    nodes = body("a = [b for c in d]\nclass E:\n    f = g\nimport h.i\nwith j as k: pass")
    assert bound(nodes) == {"a", "E", "h", "k"}
    assert read(nodes) == {"b", "d", "g", "j"}


def test_answers_are_the_callers_own() -> None:
    nodes = body("def f(x):\n    y = x + z\n    return y")
    for ask in (lambda: bound(nodes), lambda: free(nodes[0]), lambda: read(nodes)):
        answer = ask()
        if isinstance(answer, set):  # else nobody can change it
            answer.add("spoiled")
        assert "spoiled" not in ask()
    assert free(nodes[0]) == {"z"}


def test_nothing_outlives_the_tree() -> None:
    tree = ast.parse("def f():\n    return g")
    gone = weakref.ref(tree.body[0])
    assert bound(tree.body) == {"f"}
    assert free(tree.body[0]) == {"g"}
    del tree
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("f( x )  # y", "f(x)", True),
        ("x = 1", "x = 1.0", False),
        ("x = 0.0", "x = -0.0", False),
        ("x = True", "x = 1", False),
        ("f(a, b)", "f(b, a)", False),
        ("f(a)", "f(a, b)", False),
        ("for x in y: pass", "async_ = y", False),
        ("del x", "x", False),
        ("x: int", "x: int = None", False),
        ("x = 1e999 - 1e999", "x = 1e999 - 1e999", True),
    ],
)
def test_same_is_told_as_by_dump(one: str, other: str, equal: bool) -> None:
    assert same(ast.parse(one), ast.parse(other)) is equal
    assert (ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))) is equal

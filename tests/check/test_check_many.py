"""Many mistakes in one cell: what each costs does not grow with the names of the notebook."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from conftest import Notebook


def test_texts_are_not_read_again_for_each_name(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook.run("x = torch.randn(4, device=device)")
    walked = []
    walk = ast.walk

    def counted(node: ast.AST) -> Iterator[ast.AST]:
        walked.append(node)
        return walk(node)

    def walks(mistakes: int, names: int) -> float:
        notebook.run("".join(f"t{at} = torch.ones({at + 1}, device=device)\n" for at in range(names)))
        walked.clear()
        cell = "".join(f"w{at} = torch.ones(4)\ny{at} = x * w{at}\n" for at in range(mistakes))
        assert len(notebook.check(cell).report.findings) == mistakes
        return sum(isinstance(node, ast.Module) for node in walked) / mistakes

    monkeypatch.setattr(ast, "walk", counted)
    walks(1, 0)  # the first time the diagnosis is imported too
    few, names, mistakes = walks(4, 0), walks(4, 60), walks(16, 60)
    assert names < 2 * few  # the cells before are read as well, and are two more each time
    assert mistakes < 2 * few


def test_a_report_of_ours_is_not_searched_for_tensors(notebook: Notebook) -> None:
    notebook.run("x = torch.randn(4, device=device)")
    report = notebook.check("y = x + torch.ones(4)").report
    notebook.run("kept = [report, x]")
    text = notebook.run("%devices").text
    assert "report" not in text
    assert "kept" in text
    assert report.findings

"""Fixes where nothing lives: by the texts alone, so only those that are right whatever the values are."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ipydevice.diagnose import bindings
from ipydevice.diagnose.finding import Finding, Step
from ipydevice.diagnose.source import Source, of_cell
from ipydevice.diagnosis import Fix
from ipydevice.fixes import propose
from ipydevice.fixes.context import Context, Proposal
from ipydevice.fixes.edits import Draft
from ipydevice.fixes.moves import where_passed
from ipydevice.language import say

_LISTS = (ast.List, ast.ListComp)
_DICTS = (ast.Dict, ast.DictComp)


def propose_from_text(finding: Finding) -> list[Fix]:
    """Ways to mend it, the best first; empty where the texts show none."""
    if finding.stray is not None and finding.stray.kind == "optimizer":
        return []  # which of its tensors, and whether the model moved before or after, only the live ones tell
    ctx = Context(finding)
    own = _OWN.get(finding.cause)
    found = [fix for proposal in (own(ctx) if own is not None else ()) for fix in ctx.fixes(proposal)]
    if finding.stray is not None and finding.stray.kind == "module":
        return found  # moving a module at its use copies it on every call
    return found or [fix for fix in propose(finding) if fix.kind != "repair"]


def _module_left_behind(ctx: Context) -> Iterator[Proposal]:
    """``Net()`` becomes ``Net().to(device)``: the object itself, or the one whose class sets it."""
    step = ctx.chain[-1] if ctx.chain else None
    if step is None or step.value is None:
        return
    source, value, name = step.site.source, step.value, _target(step)
    inside = source.class_of(step.site.node)
    if inside is not None:
        instance = _instance(ctx, inside.name)
        if instance is None:
            return
        source, value, name = instance
    site = type(step.site)(source, value)
    device = ctx.device(site)
    if device is not None:
        yield Proposal(
            say("move {name} where it is made", name=name or say("the module")),
            [Draft(source).suffix(value, f".to({device})")],
        )


def _above_the_use(ctx: Context) -> Iterator[Proposal]:
    """``model.to(device)`` above the statement that failed: whoever had the model may move it again."""
    stray = ctx.stray
    if stray is None or not isinstance(stray.site.node, ast.Name):
        return
    source, name = stray.site.source, stray.site.node.id
    statement = source.statement(stray.site.node)
    if statement is None or source.function(stray.site.node) is not None:
        return
    device = ctx.device(type(stray.site)(source, statement), avoid=[name])
    if device is not None:
        draft = Draft(source).before(statement, f"{name}.to({device})")
        yield Proposal(
            say("move {name} before it is used", name=name), [draft], note=say("moves nothing when it is there already")
        )


def _target(step: Step) -> str:
    statement = step.site.source.statement(step.site.node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return ast.unparse(targets[0]) if targets else ""


def _instance(ctx: Context, cls: str) -> tuple[Source, ast.expr, str] | None:
    """Where the latest instance of a class is bound to a name, in the cells or in the file of the failure."""
    texts = [_source(ctx, number) for number in range(len(ctx.finding.history.cells))] or [ctx.finding.failed.source]
    for source in reversed(texts):
        for call in reversed(bindings.calls(source.tree, cls)):
            statement = source.parent(call)
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                return source, call, statement.targets[0].id
    return None


def _source(ctx: Context, number: int) -> Source:
    cell = ctx.finding.history.cells[number]
    if ctx.finding.failed.source.cell is cell:
        return ctx.finding.failed.source
    return of_cell(ctx.finding.history, cell)


def _plain_container(ctx: Context) -> Iterator[Proposal]:
    """``self.layers = [...]`` becomes ``nn.ModuleList([...])``."""
    step = ctx.chain[-1] if ctx.chain else None
    found = _container(step) if step is not None else None
    if step is None or found is None:
        return
    value, name = found
    wrapper = "nn.ModuleList" if isinstance(value, _LISTS) else "nn.ModuleDict"
    yield Proposal(
        say("keep the modules of {name} in {wrapper}", name=name, wrapper=wrapper),
        [Draft(step.site.source).wrap(value, f"{wrapper}(", ")")],
    )


def _container(step: Step) -> tuple[ast.expr, str] | None:
    """The list or dict literal that the loop's attribute is bound to in __init__."""
    cls = step.site.source.class_of(step.site.node)
    for node in ast.walk(step.value) if step.value is not None and cls is not None else ():
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            for binding in bindings.of_attribute(cls, node.attr) if cls is not None else ():
                if binding.how == "assignment" and isinstance(binding.value, (*_LISTS, *_DICTS)):
                    return binding.value, f"self.{node.attr}"
    return None


def _plain_attribute(ctx: Context) -> Iterator[Proposal]:
    """``self.pe = torch.zeros(...)`` becomes a buffer, which follows the module."""
    step = next((step for step in ctx.chain if step.how == "attribute"), None)
    statement = step.site.node if step is not None else None
    passed = [given for given in ctx.chain if given.how == "argument"]
    if step is not None and passed and not _is_module(step):
        moved = where_passed(ctx, passed[-1])
        if moved is not None:
            yield moved  # what builds the object, so that all it keeps is where it is used
        return
    if step is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target = statement.targets[0]
    if not (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"):
        return
    value = step.site.source.segment(statement.value)
    code = f'self.register_buffer("{target.attr}", {value}, persistent=False)'
    yield Proposal(
        say("register self.{attribute} as a buffer", attribute=target.attr),
        [Draft(step.site.source).replace_statement(statement, code)],
    )


def _is_module(step: Step) -> bool:
    """Whether the class that sets the attribute may be one of nn.Module's."""
    cls = step.site.source.class_of(step.site.node)
    return cls is None or bool(cls.bases)  # a class without bases is none for sure


_OWN = {
    "framework_moved_model": _above_the_use,
    "model_not_moved": _module_left_behind,
    "module_in_plain_container": _plain_container,
    "plain_tensor_attribute": _plain_attribute,
}

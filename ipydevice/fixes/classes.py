"""Classes of the user's: where one sets an attribute, and whether a tensor there may become a buffer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ipydevice import placement
from ipydevice.cells import Cell
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.source import Source
from ipydevice.fixes.context import Context
from ipydevice.fixes.names import last_name
from ipydevice.placement.kinds import attributes

_RANDOM = re.compile(r"\b(rand\w*|normal_?|uniform_?|bernoulli_?|multinomial|xavier\w*|kaiming_\w*|dropout)\b")


@dataclass(slots=True)
class Setting:
    """One assignment to an attribute of an instance: ``self.pe = expr`` in a method, or part of a tuple."""

    site: Site  # the statement
    statement: ast.Assign | ast.AnnAssign
    value: ast.expr
    method: ast.FunctionDef | ast.AsyncFunctionDef
    whole: bool  # the statement assigns this alone


def class_node(ctx: Context, owner: Any) -> tuple[Source, ast.ClassDef] | None:
    """The class statement of an object's class, in the newest text that has it."""
    for cls in type(owner).__mro__:
        found = _class_named(ctx, cls.__name__, cls.__module__)
        if found is not None:
            return found
    return None


def class_nodes(ctx: Context, owner: Any) -> Iterator[tuple[Source, ast.ClassDef]]:
    """The class statements of the object's class and of its bases, the nearest first."""
    for cls in type(owner).__mro__:
        found = _class_named(ctx, cls.__name__, cls.__module__)
        if found is not None:
            yield found


def _class_named(ctx: Context, name: str, module: str) -> tuple[Source, ast.ClassDef] | None:
    for source in sources(ctx):
        if source.file is not None and module == "__main__" and not _is_main(ctx, source):
            continue
        if source.cell is not None and module != "__main__":
            continue
        for node in source.nodes:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return source, node
    return None


def _is_main(ctx: Context, source: Source) -> bool:
    """Is it the text of a program that runs, by itself or by ``%run``?"""
    finding = ctx.finding
    sites = [finding.failed, *(step.site for step in finding.chain)]
    return any(s.source is source and s.frame and s.frame.f_globals.get("__name__") == "__main__" for s in sites)


def sources(ctx: Context) -> Iterator[Source]:
    """Texts to look in: those that the finding has read already, then every cell, the latest first."""
    seen: set[int] = set()
    cells: set[int] = set()
    finding = ctx.finding
    sites = [finding.failed, *(s.site for s in finding.chain), *(s.site for s in finding.owner_chain)]
    if finding.stray is not None:
        sites.append(finding.stray.site)
    for site in sites:
        if id(site.source) not in seen:
            seen.add(id(site.source))
            if site.source.cell is not None:
                cells.add(id(site.source.cell))
            yield site.source
    for cell in reversed(ctx.work.order):
        if id(cell) not in cells:
            yield cell_source(ctx, cell)


def functions_named(ctx: Context, name: str) -> Iterator[tuple[Source, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions and methods of that name in the notebook, and the ``__init__`` of a class, at most one a text."""
    for source in sources(ctx):
        if name in source.functions:
            yield source, source.functions[name]


def cell_source(ctx: Context, cell: Cell) -> Source:
    """A cell's text with its tree."""
    return ctx.work.source(cell)


def settings(ctx: Context, owner: Any, attribute: str) -> list[Setting]:
    """The statements of the owner's class that set ``self.<attribute>``, in the order they stand."""
    for source, node in class_nodes(ctx, owner):
        found = list(settings_in(source, node, attribute))
        if found:
            return found
    return []


def settings_in(source: Source, node: ast.ClassDef, attribute: str) -> Iterator[Setting]:
    """The statements of one class that set the attribute."""
    for method in node.body:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for statement in ast.walk(method):
            if isinstance(statement, ast.Assign):
                targets, value = statement.targets, statement.value
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                targets, value = [statement.target], statement.value
            else:
                continue
            for target in targets:
                if _is_own(target, attribute, method):
                    yield Setting(Site(source, statement), statement, value, method, len(targets) == 1)
                elif (
                    isinstance(target, ast.Tuple)
                    and isinstance(value, ast.Tuple)
                    and len(target.elts) == len(value.elts)
                ):
                    for one, part in zip(target.elts, value.elts, strict=True):
                        if _is_own(one, attribute, method):
                            yield Setting(Site(source, statement), statement, part, method, False)


def pairs(statement: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(target, value) of an assignment, of each part of ``self.a, self.b = x, y``."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts, strict=True)
        else:
            yield target, value


def _is_own(target: ast.AST, attribute: str, method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    if not (isinstance(target, ast.Attribute) and target.attr == attribute and isinstance(target.value, ast.Name)):
        return False
    return bool(method.args.args) and target.value.id == method.args.args[0].arg


def init_of(node: ast.ClassDef) -> ast.FunctionDef | None:
    """The class's own ``__init__``."""
    return next((m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)


def super_call(method: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt | None:
    """The statement that calls the base's ``__init__``."""
    for statement in method.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and last_name(node.func) == "__init__":
                return statement
    return None


def after_super(setting: Setting) -> bool:
    """Does the statement run when nn.Module is ready to register things?"""
    if setting.method.name != "__init__":
        return True
    call = super_call(setting.method)
    return call is None or _place(call) < _place(setting.statement)


def _place(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset  # "super().__init__(); self.x = x" stands on one line


def is_random(method: ast.AST, source: Source) -> bool:
    """Could running the method twice give other numbers?"""
    return bool(_RANDOM.search(ast.unparse(method)))


def has_class_attribute(owner: Any, name: str) -> bool:
    """Is there an attribute of that name on the class, which register_buffer would refuse?"""
    return any(name in cls.__dict__ for cls in type(owner).__mro__)


def containers_of(owner: Any, item: Any) -> Iterator[tuple[str, Any]]:
    """(attribute, list or dict) of the owner that holds `item` without nn.Module knowing."""
    for name, held in list(attributes(owner).items()):
        if type(held) not in (list, tuple, dict) or name in ("_modules", "_parameters", "_buffers"):
            continue
        inside = list(held.values()) if type(held) is dict else list(held)
        if any(part is item for part in inside):
            yield name, held


def all_modules(held: Any) -> bool:
    """Are all items modules?"""
    inside = list(held.values()) if type(held) is dict else list(held)
    return bool(inside) and all(placement.is_module(part) for part in inside)


def quote(source: Source, text: str) -> str:
    """The text as a literal with the quotes that the source prefers."""
    mark = "'" if source.text.count("'") > source.text.count('"') else '"'
    return f"{mark}{text}{mark}"


def owner_path(ctx: Context) -> str | None:
    """How the workspace reaches the object that holds the stray: "model[1]" for "model[1].pe"."""
    stray = ctx.stray
    if stray is None or stray.path is None or not stray.attribute:
        return None
    for ending in (f".{stray.attribute}", stray.attribute):
        if stray.path.endswith(ending) and len(stray.path) > len(ending):
            path = stray.path[: -len(ending)]
            try:
                ast.parse(path, mode="eval")
            except SyntaxError:
                return None
            return path
    return None


def path_of(ctx: Context, owner: Any) -> str | None:
    """How the workspace reaches an object: by a name, or a few levels below one through modules."""
    named = owner_path(ctx) if ctx.stray is not None and owner is ctx.stray.owner else None
    if named is not None:
        return named
    for name, live in list(ctx.finding.namespace.items()):
        if live is owner and not name.startswith("_"):
            return name
    for name, live in list(ctx.finding.namespace.items()):
        if placement.is_module(live) and not name.startswith("_"):
            below = _below(live, owner, name, 6)
            if below is not None:
                return below
    return None


def _below(module: Any, owner: Any, path: str, depth: int) -> str | None:
    for member in placement.members(module) if depth else ():
        if member.value is owner:
            return f"{path}{member.path}"
        if member.via == "module":
            found = _below(member.value, owner, f"{path}{member.path}", depth - 1)
            if found is not None:
                return found
    return None

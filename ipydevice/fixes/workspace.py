"""The notebook as the fixes see it: cells in the order they ran, and which names exist where."""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from ipydevice.cells import Cell
from ipydevice.diagnose.evaluate import MISSING, Scope
from ipydevice.diagnose.finding import Finding, Site
from ipydevice.diagnose.source import Source, of_cell
from ipydevice.fixes.names import Effects, bound, bound_by, parameters, receiver

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_COMPREHENSION_FRAMES = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class Workspace:
    """What ran before the failure, read from texts and from the live namespace."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        self.history = finding.history
        self._sources: dict[Cell, Source] = {}
        self._local_names: dict[ast.AST, set[str]] = {}
        self.devices_told: dict[tuple[str, int], list[tuple[float, str]]] = {}  # by name and id of a live object
        self._functions: dict[ast.AST, list[ast.AST]] = {}
        self._bound_before: dict[tuple[ast.AST, ast.AST], set[str]] = {}

    @cached_property
    def failed(self) -> Cell | None:
        """The cell that raised: the one the user ran, not the one whose function was called."""
        start = self.finding.start
        starts_in = None if start is None else start.source.cell
        code = None if start is None or start.frame is None else start.frame.f_code
        # Where the traceback starts in a function, somebody else has called that: a thread, a widget, an `except`.
        if starts_in is not None and code is not None and not code.co_flags & inspect.CO_NEWLOCALS:
            return starts_in
        if self.history.running is not None:
            return self.history.running
        theirs = [cell for cell in self.history.cells if not cell.is_ours]
        if starts_in is not None and code is not None:
            names = {code.co_qualname.partition(".")[0]}  # of a method, its class
            names |= {
                n
                for n, v in list(self.finding.namespace.items())
                if type(v) is types.FunctionType and v.__code__ is code
            }
            users = [cell for cell in theirs if names & self.effects(cell).reads]
            return users[-1] if users else starts_in
        broken = [cell for cell in theirs if cell.success is False]
        if broken:
            return broken[-1]
        return theirs[-1] if theirs else self.finding.failed.source.cell

    @cached_property
    def order(self) -> list[Cell]:
        """The notebook's cells in the order they ran, the failed one last, without what first ran after it."""
        failed = self.failed
        if failed is None:
            return self.history.current()
        runs = self.history.cells
        before = {_identity(cell) for cell in runs[: runs.index(failed) if failed in runs else None]}
        before.discard(_identity(failed))
        cells = [c for c in self.history.current() if c is not failed and _identity(c) in before and not c.is_ours]
        return [*cells, failed]

    def effects(self, cell: Cell) -> Effects:
        """What running this cell does to names."""
        found = self._effects.get(cell)
        if found is None:
            found = self._effects[cell] = Effects(self.source(cell).tree)
        return found

    def source(self, cell: Cell) -> Source:
        """The cell's text with its tree, parsed once."""
        found = self._sources.get(cell)
        if found is None:
            found = self._sources[cell] = of_cell(self.history, cell)
        return found

    @cached_property
    def _effects(self) -> dict[Cell, Effects]:
        return {}

    @cached_property
    def _positions(self) -> dict[int, int]:
        return {id(cell): index for index, cell in enumerate(self.order)}

    def position(self, cell: Cell | None) -> int:
        """The cell's place in `order`; the end where it isn't there."""
        index = self._positions.get(id(cell))
        if index is not None:
            return index
        # A cell edited and run since: the run of the same cell stands for it.
        for index, other in enumerate(self.order):
            if cell is not None and other.raw == cell.raw:
                return index
        return len(self.order)

    def binders(self, name: str) -> list[Cell]:
        """The cells that bind a name, in order."""
        return self._binders.get(name, [])

    @cached_property
    def _binders(self) -> dict[str, list[Cell]]:
        found: dict[str, list[Cell]] = {}
        for cell in self.order:
            for name in self.effects(cell).binds:
                found.setdefault(name, []).append(cell)
        return found

    # -- scopes -------------------------------------------------------------------------

    def globals_of(self, site: Site) -> Mapping[str, Any]:
        """The global names that the code at `site` sees."""
        if site.frame is not None:
            return site.frame.f_globals
        if site.source.cell is None and site.source.file:
            for module in list(sys.modules.values()):
                if isinstance(module, types.ModuleType) and module.__dict__.get("__file__") == site.source.file:
                    return module.__dict__
        return self.finding.namespace

    def scope(self, site: Site) -> Scope:
        """The live values at `site`: of its frame, or of the globals alone."""
        return Scope(frame_locals(site.frame), self.globals_of(site))

    def value(self, site: Site, name: str) -> Any:
        """The live value of a name at `site`; MISSING where a local of a frame that is gone hides it."""
        if self.is_local(site, name):
            return frame_locals(site.frame).get(name, MISSING)
        if site.frame is not None and name in site.frame.f_locals:
            return site.frame.f_locals[name]
        return self.globals_of(site).get(name, MISSING)

    def self_name(self, site: Site) -> str:
        """What the method around the node calls its object: "self", for most."""
        for function in self.functions(site.source, site.node):
            if isinstance(site.source.parent(function), ast.ClassDef):
                return receiver(function)
        return "self"

    def functions(self, source: Source, node: ast.AST) -> Iterator[ast.AST]:
        """The functions and lambdas around `node`, the innermost first."""
        found = self._functions.get(node)
        if found is None:
            found = self._functions[node] = [
                up
                for up in source.ancestors(node)
                if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
                and _runs_inside(source, node, up)
            ]
        yield from found

    def _locals(self, function: ast.AST) -> set[str]:
        """Names of a function's own; asked for often."""
        found = self._local_names.get(function)
        if found is None:
            found = self._local_names[function] = _locals(function)
        return found

    def is_local(self, site: Site, name: str) -> bool:
        """Is the name one of a function (or comprehension) around the node?"""
        if name in _comprehension_names(site.source, site.node):
            return True
        return any(name in self._locals(function) for function in self.functions(site.source, site.node))

    def available(self, site: Site, name: str) -> bool:
        """Is the name bound when the node at `site` runs, also when the notebook runs from the top?"""
        source, node = site.source, site.node
        if name in _comprehension_names(source, node):
            return True
        inner = True
        for function in self.functions(source, node):
            if name in self._locals(function):
                return name in parameters(function) or not inner or name in self._before(source, node, function)
            inner = False
        names = self.globals_of(site)
        if name not in names:
            return False
        around = next(self.functions(source, node), None)
        if source.cell is None:
            at_top = around is None
            return name in (self._before(source, node, source.tree) if at_top else bound(source.tree.body))
        binders = self.binders(name)
        here = self.position(source.cell)
        if not binders or any(self.position(cell) < here for cell in binders):
            return True
        if around is not None and getattr(around, "name", "") != "__init__":
            return True  # looked up when the function is called, which is later; an object may be made before
        if around is not None:
            return any(cell is source.cell for cell in binders)
        return name in self._before(source, node, source.tree)

    def _before(self, source: Source, node: ast.AST, scope: ast.AST) -> set[str]:
        """What is surely bound when `node` runs; asked for each name of the notebook."""
        found = self._bound_before.get((node, scope))
        if found is None:
            found = self._bound_before[node, scope] = _bound_before(source, node, scope)
        return found

    def names(self, site: Site) -> Iterator[tuple[str, bool]]:
        """(name, is it local) of all names that are bound at `site`, the nearest first."""
        seen: set[str] = set()
        local: list[str] = sorted(_comprehension_names(site.source, site.node))
        for function in self.functions(site.source, site.node):
            local += parameters(function)
            local += sorted(self._locals(function) - set(parameters(function)))
        for name in local:
            if name not in seen:
                seen.add(name)
                if self.available(site, name):
                    yield name, True
        for name in list(self.globals_of(site)):
            if name not in seen and not name.startswith("_") and self.available(site, name):
                yield name, False

    # -- torch's names ------------------------------------------------------------------

    def torch_name(self, site: Site, dotted: str) -> str | None:
        """How the code at `site` would write ``torch.<dotted>``: "nn.ModuleList"; None without an import."""
        torch = sys.modules.get("torch")
        if torch is None:
            return None
        parts = dotted.split(".")
        for depth in range(len(parts), -1, -1):
            wanted: Any = torch
            for part in parts[:depth]:
                wanted = getattr(wanted, part, None)
            for name, held in list(self.globals_of(site).items()):
                if (
                    held is wanted
                    and not name.startswith("_")
                    and not self.is_local(site, name)
                    and self.available(site, name)
                ):
                    return ".".join([name, *parts[depth:]])
        return None


def frame_locals(frame: types.FrameType | None) -> Mapping[str, Any]:
    """The locals of a frame; of a comprehension's, which has one of its own until Python 3.12, those around it too."""
    if frame is None:
        return {}
    outer, own = frame.f_back, frame.f_code
    if own.co_name in _COMPREHENSION_FRAMES and outer is not None and any(c is own for c in outer.f_code.co_consts):
        return {**frame_locals(outer), **frame.f_locals}
    return frame.f_locals


def _identity(cell: Cell) -> str:
    """What all runs of a cell have in common, as far as the front end tells."""
    return cell.raw if cell.cell_id is None else cell.cell_id


def outermost_loop(source: Source, node: ast.AST) -> ast.stmt | None:
    """The outermost loop statement around `node` within its own function, if any."""
    found: ast.stmt | None = None
    for up in source.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            break
        if isinstance(up, _LOOPS):
            found = up
    return found


def _runs_inside(source: Source, node: ast.AST, function: ast.AST) -> bool:
    """False for a decorator or default value, which runs outside the function."""
    if isinstance(function, ast.Lambda):
        inside: list[ast.AST] = [function.body]
    else:
        inside = list(function.body)  # type: ignore[attr-defined]
    if any(part is node for part in inside):
        return True
    return any(up in inside for up in source.ancestors(node))


def _locals(function: ast.AST) -> set[str]:
    body = [function.body] if isinstance(function, ast.Lambda) else list(getattr(function, "body", []))
    declared = {n for s in body for node in ast.walk(s) if isinstance(node, ast.Global) for n in node.names}
    return (bound(body) | set(parameters(function))) - declared


def _comprehension_names(source: Source, node: ast.AST) -> set[str]:
    found: set[str] = set()
    child = node
    for up in source.ancestors(node):
        if isinstance(up, _COMPREHENSIONS):
            generators = up.generators
            if child in generators:  # inside the k-th "for ... in": only the earlier ones are bound
                generators = generators[: generators.index(child)]
            for generator in generators:
                found |= {n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)}
        elif isinstance(up, ast.stmt):
            break
        child = up
    return found


def _bound_before(source: Source, node: ast.AST, scope: ast.AST) -> set[str]:
    """The names that statements which surely ran before `node` bind in the scope."""
    found: set[str] = set()
    child: ast.AST = node
    for up in source.ancestors(node):
        if isinstance(up, (ast.For, ast.AsyncFor)) and child in up.body:
            found |= bound_by(up.target)
        if isinstance(up, (ast.With, ast.AsyncWith)) and child in up.body:
            found |= bound(up.items)
        for _, block in ast.iter_fields(up):
            if isinstance(block, list) and child in block:
                for earlier in block[: block.index(child)]:
                    if isinstance(earlier, ast.If):
                        found |= bound(earlier.body) & bound(earlier.orelse)
                    elif isinstance(earlier, ast.stmt):
                        found |= bound_by(earlier)
        if up is scope:
            break
        child = up
    return found

"""The user's code around one error: who calls what, which frame runs which function, where things are defined."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from ipydevice import placement
from ipydevice.diagnose import bindings, locate
from ipydevice.diagnose.evaluate import MISSING, Scope, is_exactly, is_of, value
from ipydevice.diagnose.finding import Site
from ipydevice.diagnose.frames import Frame, Sources, is_library
from ipydevice.diagnose.source import FunctionNode, Source
from ipydevice.placement.kinds import attributes, class_dicts


@dataclass(slots=True)
class Entered:
    """A finished call that a value is followed into: the frame is gone, the arguments still stand in the text."""

    call: ast.Call
    site: Site  # where the call stands
    bound: bool
    scope: Scope  # what the function still sees: `self`, what its closure caught, its globals


class Code:
    """The frames of one error and the cells that ran, as text that can be asked."""

    def __init__(self, sources: Sources, frames: list[Frame], namespace: dict[str, Any]) -> None:
        self.sources = sources
        self.frames = [frame for frame in frames if frame.is_user]
        self.in_loader = any(_makes_items(frame) for frame in frames)
        self.workspace = Scope.of_namespace(namespace)
        self._entered: dict[FunctionNode, Entered] = {}
        self._modules: dict[str, Scope] = {}

    def enter(self, called: Any, call: ast.Call, site: Site) -> tuple[Source, FunctionNode] | None:
        """The definition of what a finished call ran, when it is the user's; its arguments are kept in mind."""
        text = self.function_text(called)
        if text is None:
            return None
        live: Any = self._users_layer(called)
        bound = is_exactly(live, MethodType)
        function: FunctionType = live.__func__ if bound else live
        names = dict(zip(function.__code__.co_freevars, _caught(function), strict=False))
        parameters = bindings.parameters(text[1])
        if bound and parameters:
            names[parameters[0]] = live.__self__
        around = self.entered(site)
        for name in parameters:
            given = bindings.argument_for(call, text[1], name, bound)
            passed = value(given, self.scope(site)) if given is not None else MISSING
            if is_exactly(passed, *_UNCHANGING):  # what it was then it is now
                names[name] = passed
        if around is not None and _passes_all_on(call, site.source.function(site.node)):  # `return fn(*args, **kw)`
            call, site = around.call, around.site
        self._entered[text[1]] = Entered(call, site, bound, Scope(names, function.__globals__))
        return text

    def entered(self, site: Site) -> Entered | None:
        """The finished call whose text a site stands in."""
        if site.frame is not None:
            return None
        function = site.node if site.node in self._entered else site.source.function(site.node)
        while function is not None and function not in self._entered:
            function = site.source.function(function)
        return self._entered.get(function) if function is not None else None

    def scope(self, site: Site) -> Scope:
        if site.frame is not None:
            return Scope.of_frame(site.frame)
        entered = self.entered(site)
        if entered is not None:
            return entered.scope
        return self.workspace if site.source.file is None else self._scope_of_file(site.source.file)

    def _scope_of_file(self, file: str) -> Scope:
        """What the top level of a user's file sees; the workspace where it is no module that is loaded."""
        if file not in self._modules:
            loaded = (module.__dict__ for module in list(sys.modules.values()) if is_exactly(module, ModuleType))
            names = next((names for names in loaded if names.get("__file__") == file), None)
            self._modules[file] = self.workspace if names is None else Scope.of_namespace(names)
        return self._modules[file]

    def _live_frame(self, source: Source, function: FunctionNode | None) -> FrameType | None:
        found = self._frame_of(source, function)
        return found.frame if found is not None else None

    def _frame_of(self, source: Source, function: FunctionNode | None) -> Frame | None:
        """The live frame that runs this function, the innermost."""
        if function is None:
            return None
        lines = {function.lineno, *(item.lineno for item in getattr(function, "decorator_list", ()))}
        name = getattr(function, "name", "<lambda>")
        for frame in reversed(self.frames):
            code = frame.frame.f_code
            if frame.source is source and code.co_name == name and code.co_firstlineno in lines:
                return frame
        return None

    def argument_in_caller(self, live: Frame, function: FunctionNode, name: str) -> tuple[Site, ast.expr] | None:
        """The call in the next frame of the user's outside, and the expression it passes for the parameter."""
        at = self.frames.index(live)
        if at == 0:
            return None
        caller = self.frames[at - 1]
        if caller.source is None or caller.node is None:
            return None
        passed = value(ast.Name(name), live.scope)
        node = locate.store_statement(caller.source, caller.node)
        call = node if isinstance(node, ast.Call) else None
        site = Site(caller.source, node, caller.frame)
        if call is not None and self._enters(call, caller.scope, function):
            given = bindings.argument_for(call, function, name, self._is_bound(live, function, call))
            if given is not None:
                there = value(given, caller.scope)
                if there is MISSING or passed is MISSING or there is passed or bindings.of_name(function, name):
                    return site, given
                if placement.is_tensor(there) and placement.is_tensor(passed) and placement.same(there, passed):
                    return site, given
        for kw in call.keywords if call is not None else ():
            if kw.arg is None and value(kw.value, caller.scope) is MISSING:  # f(**{...}): made on the spot
                return site, kw.value
        return self._by_identity(passed, at) if passed is not MISSING else None

    def _enters(self, call: ast.Call, scope: Scope, function: FunctionNode) -> bool:
        """Whether a call's arguments are this function's: not where ``map``, a partial or a library stands between."""
        called = value(call.func, scope)
        if called is MISSING:
            return True
        text = self.function_text(called)
        if text is not None:
            return text[1] is function
        name = getattr(function, "name", "")
        if is_of(called, type):
            return name in ("__init__", "__new__")
        return name == "__call__" or (name == "forward" and placement.is_module(called))

    def _by_identity(self, passed: Any, at: int) -> tuple[Site, ast.expr] | None:
        """The expression outside frame `at` whose value this is; functions that pass it on by star are left out."""
        found: tuple[Site, ast.expr] | None = None
        for caller in reversed(self.frames[:at]):
            if caller.source is None or caller.node is None:
                break
            node = locate.store_statement(caller.source, caller.node)
            site = Site(caller.source, node, caller.frame)
            for expr in ast.walk(node):
                if isinstance(expr, ast.expr) and value(expr, caller.scope) is passed:
                    return site, expr
            stars = [
                part.value
                for part in ast.walk(node)
                if isinstance(part, ast.Starred) or (isinstance(part, ast.keyword) and part.arg is None)
            ]
            star = next((expr for expr in stars if _holds(value(expr, caller.scope), passed)), None)
            if star is None:
                break
            found = site, star
        return found

    @staticmethod
    def _is_bound(live: Frame, function: FunctionNode, call: ast.Call) -> bool:
        names = bindings.parameters(function)
        return bool(names) and names[0] in ("self", "cls") and "." in live.function

    def _call_in_cells(self, source: Source, function: FunctionNode, name: str) -> tuple[Site, ast.expr] | None:
        """The latest call of a function whose frame is gone, in the cells or in its own file."""
        cls = source.class_of(function)
        is_init = cls is not None and getattr(function, "name", "") == "__init__"
        called = cls.name if is_init and cls is not None else getattr(function, "name", "")
        if not called:
            return None
        names = bindings.parameters(function)
        bound = bool(names) and names[0] in ("self", "cls") and cls is not None
        for other in self._texts(source):
            for call in reversed(bindings.calls(other.tree, called)):
                given = bindings.argument_for(call, function, name, bound)
                if given is not None:
                    return Site(other, call, self.frame_running(other, call)), given
        return None

    def keyword_of_partial(self, name: str) -> tuple[Site, ast.expr] | None:
        """The latest ``partial(f, name=value)`` in the cells."""
        for source in self._texts_of_cells():
            for call in reversed(bindings.calls(source.tree, "partial")):
                given = next((kw.value for kw in call.keywords if kw.arg == name), None)
                if given is not None:
                    return Site(source, call, self.frame_running(source, call)), given
        return None

    def called(self, func: ast.expr, scope: Scope) -> Any:
        """What a call runs; of ``F.apply(x)`` the ``forward`` of the autograd Function `F`."""
        live = value(func, scope)
        owner: Any = value(func.value, scope) if isinstance(func, ast.Attribute) and func.attr == "apply" else MISSING
        if live is not MISSING or not is_of(owner, type):
            return live
        forward: Any = next((space["forward"] for space in class_dicts(owner) if "forward" in space), None)
        return MethodType(forward.__func__, owner) if is_exactly(forward, staticmethod) else live

    def _texts(self, first: Source) -> Iterator[Source]:
        """Cells that ran, the latest first, each text once; then a user's file."""
        seen: set[str] = set()
        for source in reversed(self.sources.all_cells()):
            if source.raw not in seen:
                seen.add(source.raw)
                yield source
        if first.file is not None:
            yield first

    def frame_running(self, source: Source, node: ast.AST) -> FrameType | None:
        """The live frame in which a node of some text would run, if there is one."""
        function = source.function(node)
        if function is not None:
            return self._live_frame(source, function)
        return next((f.frame for f in self.frames if f.source is source and f.function == "<module>"), None)

    @staticmethod
    def _by_global_statement(source: Source, name: str) -> bindings.Binding | None:
        for node in source.nodes:
            if isinstance(node, ast.Global) and name in node.names:
                function = source.function(node)
                found = bindings.of_name(function, name) if function is not None else []
                if found:
                    return found[-1]
        return None

    def _module_texts(self, site: Site) -> Iterator[tuple[Source, ast.AST | None]]:
        """Texts whose top level may bind a global of `site`'s text, the latest first.

        With each comes the node up to which it has run; None: it ran to its end.
        """
        here = site.source
        at_top = isinstance(site.node, (ast.expr, ast.stmt)) and here.function(site.node) is None
        if here.file is not None:
            yield here, site.node if at_top else None
            return
        cells = self.sources.all_cells()
        running = self.frames[0] if self.frames else None
        if at_top:
            yield here, site.node
            cells = cells[: cells.index(here)] if here in cells else cells
        elif running is not None and running.source is not None and running.source.cell is not None:
            yield running.source, running.node
        for source in reversed(cells):
            if running is None or source is not running.source:
                yield source, None

    def last_move(self, text: str) -> Site | None:
        """The latest call at a cell's top level that moved the thing of this text: ``model.to(device)``."""
        for source in self._texts_of_cells():
            for node in reversed(list(bindings.own_nodes(source.tree))):
                match node:
                    case ast.Call(func=ast.Attribute(value=receiver, attr="to" | "cuda" | "xpu" | "cpu")):
                        if ast.unparse(receiver) == text:
                            return Site(source, node, self.frame_running(source, node))
        return None

    def is_later(self, one: Site, other: Site) -> bool:
        """Whether a line at a cell's top level ran after another one: a name bound anew after it was moved."""
        cells = self.sources.all_cells()
        if one.source not in cells or other.source not in cells or one.source.function(one.node) is not None:
            return False
        lines = [getattr(site.node, "lineno", 0) for site in (one, other)]
        return (cells.index(one.source), lines[0]) > (cells.index(other.source), lines[1])

    def _texts_of_cells(self) -> list[Source]:
        return list(reversed(self.sources.all_cells()))

    def classes_of(self, owner: Any) -> list[tuple[Source, ast.ClassDef]]:
        """The class statements of an object's class and its bases, as far as they are the user's."""
        found = []
        for cls in type(owner).__mro__:
            text = self.class_text(cls)
            if text is not None:
                found.append(text)
        return found

    def class_text(self, cls: type) -> tuple[Source, ast.ClassDef] | None:
        module = placement.module_name(cls)
        if module in ("__main__", "builtins"):
            if module == "builtins":
                return None
            candidates = self._texts_of_cells()
        else:
            file = getattr(sys.modules.get(module), "__file__", None)
            if not isinstance(file, str) or is_library(file):
                return None
            source = self.sources.of_file(file)
            candidates = [source] if source is not None else []
        for source in candidates:
            for node in source.nodes:
                if isinstance(node, ast.ClassDef) and node.name == placement.class_name(cls):
                    return source, node
        return None

    @staticmethod
    def _users_layer(called: Any) -> Any:
        """The outermost layer of a decorated function, or the ``__call__`` of an object, that is the user's code."""
        live = called
        for _ in range(8):  # functools.wraps, lru_cache, one upon the other
            function: Any = live.__func__ if is_exactly(live, MethodType) else live
            if is_exactly(function, FunctionType) and not is_library(function.__code__.co_filename):
                return live
            inner: Any = attributes(function).get("__wrapped__")
            if inner is None:
                break
            live = MethodType(inner, live.__self__) if live is not function and callable(inner) else inner
        if is_exactly(called, FunctionType, MethodType) or is_of(called, type) or placement.is_module(called):
            return None
        method: Any = next((space["__call__"] for space in class_dicts(type(called)) if "__call__" in space), None)
        is_users = is_exactly(method, FunctionType) and not is_library(method.__code__.co_filename)
        return MethodType(method, called) if is_users else None

    def function_text(self, function: Any) -> tuple[Source, FunctionNode] | None:
        """The definition of a function, when it is the user's."""
        live = self._users_layer(function)
        live = live.__func__ if is_exactly(live, MethodType) else live
        if not is_exactly(live, FunctionType):
            return None
        code = live.__code__
        source = self.sources.of_code_file(code.co_filename)
        if source is None:
            return None
        for item in source.nodes:
            if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                continue
            first = min([item.lineno, *(deco.lineno for deco in getattr(item, "decorator_list", ()))])
            if first == code.co_firstlineno and getattr(item, "name", "<lambda>") == code.co_name:
                return source, item
        return None


_UNCHANGING = (str, int, float, bool)


def _makes_items(frame: Frame) -> bool:
    """Whether items or batches are made there, for which the host is the place: by a DataLoader or by a Dataset."""
    if frame.is_user:
        me = frame.frame.f_locals.get("self")
        return frame.frame.f_code.co_name == "__getitem__" and placement.kind_of(me) == "dataset"
    return os.path.join("torch", "utils", "data", "_utils") in frame.file


def _caught(function: FunctionType) -> list[Any]:
    """What the cells of a closure hold; `MISSING` for one that is empty still."""
    found: list[Any] = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            found.append(MISSING)
    return found


def _passes_all_on(call: ast.Call, function: FunctionNode | None) -> bool:
    """Whether a wrapper gives its own ``*args`` and ``**kwargs`` to what it wraps, and nothing else."""
    if function is None or function.args.vararg is None:
        return False
    stars = [arg.value for arg in call.args if isinstance(arg, ast.Starred)]
    return len(stars) == len(call.args) == 1 and ast.unparse(stars[0]) == function.args.vararg.arg


def _holds(live: Any, wanted: Any) -> bool:
    if is_exactly(live, dict):
        return any(held is wanted for held in live.values())
    return is_exactly(live, tuple, list) and any(held is wanted for held in live)

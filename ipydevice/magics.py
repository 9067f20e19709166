"""``%devices`` and ``%devicefix``: arguments only."""

from __future__ import annotations

import fnmatch
import itertools
import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from ipydevice import hook
from ipydevice.arguments import parsed
from ipydevice.language import joined, say
from ipydevice.requirements import torch_trouble

# Loading the extension costs a kernel's user time: the rest is imported when a magic is first used.
if TYPE_CHECKING:
    from ipydevice.diagnosis import Diagnosis, Fix, Inventory
    from ipydevice.report import CheckReport

_MOST_NAMED = 4  # fixes, or virtual GPUs, by name in one line
_QUOTED = re.compile(r"""(["']).+\1""")  # as the name of a file with a space in it is written
_MOST_CARDS = 128  # the index of a torch.device is a signed byte
_SORTS = ("bytes", "name", "device")  # listing.SORTS; not imported, so that loading costs nothing


@magics_class
class DeviceMagics(Magics):
    """The magics of one shell."""

    virtual: Any = None  # the virtual GPUs that `%devices --virtual` has switched on

    @magic_arguments()
    @argument("names", nargs="*", help="names or patterns (model, opt*), or checkpoint files; all names if left out")
    @argument("-v", "--verbose", action="store_true", help="open modules, optimizers and containers up")
    @argument("--device", help="only what is on this device: cpu, cuda, cuda:1, ...")
    @argument("--kind", help="only things of this kind: tensor, module, optimizer, ...")
    @argument("--odd", action="store_true", help="only what looks wrong")
    @argument("--sort", choices=_SORTS, help="the order of the rows; by default as the names were defined")
    @argument("--plain", action="store_true", help="print text, without a panel")
    @argument("--json", action="store_true", help="print JSON, for another program")
    @argument("--ranks", action="store_true", help="a row for each process of the group or cluster, not each name")
    @argument("--virtual", metavar="N|off", help="switch N virtual GPUs on, which compute on the CPU; or off")
    @line_magic
    def devices(self, line: str) -> None:
        """List the workspace: what is where, how big, who holds the memory, and what is odd about it.

        Examples::

            %devices
            %devices model opt -v
            %devices --odd
            %devices --device cpu --sort bytes
            %devices --kind module --plain
            %devices model.pt
            %devices --virtual 2
            %devices --ranks

        A checkpoint file is listed without being loaded. `ipydevice.inventory()` gives the same as an object.
        """
        asked = parsed(self.devices, line, "%devices")
        if asked is None:
            return
        if asked.plain and asked.json:
            raise UsageError(say("%devices prints either --plain text or --json, not both"))
        if asked.virtual is not None:
            _need_torch()
            self._switch_virtual(asked.virtual)
            return
        if asked.ranks:
            _need_torch()
            self._tell_ranks(asked)
            return
        from ipydevice import checkpoint

        asked.names = [name[1:-1] if _QUOTED.fullmatch(name) else name for name in _without_commas(asked.names)]
        files = {name: checkpoint.files_named(name) for name in asked.names if not self._is_a_name(name)}
        try:
            for file in itertools.chain(*files.values()):
                self._tell(_of_file(file, asked), asked)
            asked.names = [name for name in asked.names if not files.get(name)]
            for name in asked.names:
                if name in files and checkpoint.means_a_file(name):
                    raise UsageError(say("there is no file {name}", name=repr(name)))
            if asked.names or not files:
                _need_torch()
                self._tell(self._of_workspace(asked), asked)
        except (ValueError, OSError) as error:
            raise UsageError(str(error)) from None

    def _tell_ranks(self, asked: Namespace) -> None:
        from ipydevice import session
        from ipydevice.ranks import debug
        from ipydevice.ranks.modules import models_in

        names = session.workspace(self.shell)
        try:
            models = debug.as_models({name: names.get(name) for name in asked.names}) or models_in(names)
        except TypeError as error:
            raise UsageError(str(error)) from None
        report = debug.collect(models)
        if report is None:
            return  # rank 0 shows it
        if asked.json:
            print(json.dumps(report.to_dict(), indent=1))
        elif asked.plain:
            print(report)
        else:
            from IPython.display import display

            display(report)

    def _is_a_name(self, name: str) -> bool:
        """Whether it is a name of the workspace, a pattern of some, or leads to something inside one."""
        known = self.shell.user_ns
        root = re.match(r"\w*", name)
        if root is not None and root.group() in known:
            return name in known or not os.path.isfile(name)  # there may be a model and a file model.pt
        return any(fnmatch.fnmatchcase(one, name) for one in list(known) if type(one) is str)

    def _of_workspace(self, asked: Namespace) -> Inventory:
        from ipydevice import session

        return session.listed(
            self.shell,
            names=asked.names,
            device=asked.device,
            kind=asked.kind,
            odd_only=asked.odd,
            sort=asked.sort,
            verbose=asked.verbose,
        )

    def _tell(self, found: Inventory, asked: Namespace) -> None:
        from ipydevice import show

        if asked.json:
            print(json.dumps(found.to_dict(), ensure_ascii=False, indent=1))
            return
        hung = hook.of(self.shell)
        if hung is not None and found.fixes:
            hung.checked = found
        if asked.plain:
            print(show.text(found))
        else:
            show.display(found)

    @magic_arguments()
    @argument("number", nargs="?", help="the fix to print and to put into the next cell; the whole panel if left out")
    @argument("--apply", action="store_true", help="write the changes of a fix that edits .py files")
    @argument("--report", action="store_true", help="print the last error as Markdown, for a forum or an issue")
    @argument("--forget", action="store_true", help="let go of the tensors that the last error still holds in memory")
    @line_magic
    def devicefix(self, line: str) -> None:
        """Show the last device error again, or one of its fixes.

        Examples::

            %devicefix
            %devicefix 1
            %devicefix 1 --apply
            %devicefix --report
            %devicefix --forget

        `%devicefix 1` prints the fix and puts it into the next cell; `--apply` is for fixes that edit `.py` files.
        """
        asked = parsed(self.devicefix, line, "%devicefix")
        if asked is None:
            return
        if asked.forget:
            if asked.number is not None or asked.apply or asked.report:
                raise UsageError(say("%devicefix --forget stands alone: first take the fix, then forget the error"))
            from ipydevice.forget import forget_error
            from ipydevice.show import quantities

            freed = quantities.sizes(forget_error(self.shell)) or say("the tensors")
            print(say("Forgotten: {freed} that only the last error held can be freed.", freed=freed))
            print(say("%debug and %tb have nothing to show."))
            return
        if asked.report and (asked.number is not None or asked.apply):
            raise UsageError(say("%devicefix --report stands alone: it tells of the whole error, not of one fix"))
        if asked.apply and asked.number is None:
            raise UsageError(say("%devicefix --apply needs the number of a fix: %devicefix 1 --apply"))
        _need_torch()
        diagnosis = self._last_diagnosis()
        if diagnosis is None:
            print(self._nothing_to_show())
        elif asked.report:
            from ipydevice import show

            print(show.markdown(diagnosis))
        elif asked.number is None:
            from ipydevice import show

            show.display(diagnosis)
        elif asked.apply:
            self._write(_chosen(diagnosis, asked.number), asked.number)
        else:
            self._offer(_chosen(diagnosis, asked.number), asked.number)

    def _last_diagnosis(self) -> Diagnosis | CheckReport | Inventory | None:
        """What was shown last: a check or table with fixes, a device error, one from before we were loaded."""
        from ipydevice import session

        hung = hook.of(self.shell)
        shown = None if hung is None else hung.checked or hung.last
        return shown or session.explain()

    def _nothing_to_show(self) -> str:
        hung = hook.of(self.shell)
        if hung is None or hung.error_before is None:
            return say("There has been no device error in this session.")
        # IPython and Python keep no error but the last.
        return say(
            "The last error before ipydevice was loaded is a {error}, not a device error, "
            "and there has been none since; an earlier one cannot be seen any more: run its cell "
            "again.",
            error=hung.error_before,
        )

    def _offer(self, fix: Fix, number: str) -> None:
        """Print the fix, and put it into the next cell where the front end does that."""
        from ipydevice.show import insertion

        texts = insertion.cells_of(fix, int(number))
        print(f"# {fix.title}" + (f" ({fix.note})" if fix.note else ""))
        print("\n\n".join(texts))
        if fix.diff:
            print(fix.diff)
        # One cell is all that a front end takes, and a cell magic must stand at the top of its own.
        joined = not any(text.startswith("%%") for text in texts)
        self.shell.set_next_input("\n\n".join(texts) if joined else texts[0])

    def _write(self, fix: Fix, number: str) -> None:
        from ipydevice.fixes import files

        if not any(edit.file for edit in fix.edits):
            raise UsageError(
                say(
                    "fix {number} changes cells, not files: %devicefix {number} puts it into the next cell",
                    number=number,
                )
            )
        try:
            written = files.write(fix)
        except (OSError, ValueError) as error:
            raise UsageError(say("nothing was written: {error}", error=error)) from None
        print(say("Written: {files}.", files=", ".join(written)))
        if fix.setup:
            self.shell.set_next_input(fix.setup)
            print(fix.setup)
        if fix.rerun:
            cells = joined(say("the cell") if again.cell is None else f"In [{again.cell}]" for again in fix.rerun)
            print(say("Then run {cells}.", cells=cells))

    def _switch_virtual(self, wish: str) -> None:
        if wish != "off" and not (wish.isdecimal() and 0 < int(wish) <= _MOST_CARDS):
            raise UsageError(
                say(
                    "%devices --virtual takes a number of GPUs, such as 2 (at most {most}), or off; it got {wish}",
                    most=_MOST_CARDS,
                    wish=repr(wish),
                )
            )
        from ipydevice.virtual import enabled, virtual_gpus

        self.close()
        if wish == "off":
            left = enabled()
            if left:
                print(
                    say(
                        "{count} virtual GPU stays on, which your code has switched on: call disable() on {name}, or "
                        "leave its with block."
                        if left == 1
                        else "{count} virtual GPUs stay on, which your code has switched on: call disable() on {name}, "
                        "or leave its with block.",
                        count=left,
                        name=self._users_virtual_gpus(),
                    )
                )
            else:
                print(say("Virtual GPUs are off."))
            return
        try:
            self.virtual = virtual_gpus(int(wish)).enable()
        except RuntimeError as error:
            raise UsageError(str(error)) from None
        last = int(wish) - 1
        names = joined(f"cuda:{n}" for n in range(last + 1))
        if last >= _MOST_NAMED:
            names = say("{first} to {last}", first="cuda:0", last=f"cuda:{last}")
        print(
            say("Virtual GPUs are on: {names}. They compute on the CPU and follow PyTorch's device rules.", names=names)
        )

    def _users_virtual_gpus(self) -> str:
        """The name by which the workspace has them, or words."""
        from ipydevice.virtual import virtual_gpus

        names = [name for name, value in list(self.shell.user_ns.items()) if type(value) is virtual_gpus]
        names = [name for name in names if not name.startswith("_")]
        return names[0] if len(names) == 1 else say("what virtual_gpus() gave")

    def close(self) -> None:
        """Switch off the virtual GPUs that these magics have switched on, if they have."""
        if self.virtual is not None:
            self.virtual.disable()
            self.virtual = None


def register(shell: Any) -> None:
    """Give a shell our magics, once."""
    registry = shell.magics_manager.registry
    if DeviceMagics.__name__ not in registry:
        shell.register_magics(DeviceMagics)
        registry[DeviceMagics.__name__].virtual = shell.__dict__.pop(_VIRTUAL, None)
        shell.set_hook("complete_command", _complete, str_key=_DEVICES)


def unregister(shell: Any) -> None:
    """Take our magics away; one of the same name that somebody else has defined since stays."""
    manager = shell.magics_manager
    ours = manager.registry.pop(DeviceMagics.__name__, None)
    if ours is None:
        return
    if ours.virtual is not None:
        if _is_reloading():
            setattr(shell, _VIRTUAL, ours.virtual)
        else:
            ours.close()
            print(say("Virtual GPUs are off, as %devices had switched them on: tensors on them are CPU tensors now."))
    for name, function in list(manager.magics["line"].items()):
        if getattr(function, "__self__", None) is ours:
            del manager.magics["line"][name]
    completers = shell.strdispatchers["complete_command"].strs.get(_DEVICES)
    if completers is not None:  # IPython has no call that takes a hook back
        completers.chain[:] = [(rank, one) for rank, one in completers.chain if one.__func__ is not _complete]


_DEVICES = "%devices"
_VIRTUAL = "_ipydevice_virtual"  # on the shell, while the extension is loaded anew: the virtual GPUs that stay on


def _is_reloading() -> bool:
    """Whether this is ``%reload_ext``, which unloads and loads (IPython/core/extensions.py)."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "reload_extension":
            return True
        frame = frame.f_back
    return False


def _complete(shell: Any, event: Any) -> list[str]:
    from ipydevice import completion

    return completion.candidates(shell.user_ns, event.line, event.symbol)


def _without_commas(names: Iterable[str]) -> list[str]:
    """Names as a person lists them in Python: ``model, opt``."""
    return [name for name in (name.strip(",") for name in names) if name]


def _of_file(file: str, asked: Namespace) -> Inventory:
    from ipydevice import checkpoint, listing

    return listing.refine(
        checkpoint.read(file), device=asked.device, kind=asked.kind, odd_only=asked.odd, sort=asked.sort
    )


def _chosen(diagnosis: Diagnosis | CheckReport | Inventory, number: str) -> Fix:
    fixes = diagnosis.fixes
    if not number.isdecimal() or not 1 <= int(number) <= len(fixes):
        offered = [f"{at} ({fix.title})" for at, fix in enumerate(fixes[:_MOST_NAMED], 1)]
        if len(fixes) > _MOST_NAMED:
            offered.append(say("up to {count}", count=len(fixes)))
        known = say("there are {fixes}", fixes=joined(offered)) if offered else say("none was found for the last error")
        raise UsageError(
            say("%devicefix takes the number of a fix, but got {number}; {known}", number=repr(number), known=known)
        )
    return fixes[int(number) - 1]


def _need_torch() -> None:
    trouble = torch_trouble()
    if trouble is not None:
        raise UsageError(trouble)

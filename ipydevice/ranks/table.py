"""The table of ranks as text and as HTML: what all share stands once above it, what differs is marked."""

from __future__ import annotations

import html as markup
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ipydevice.ranks.report import ModelRow, RankRow, RanksReport
from ipydevice.show import quantities
from ipydevice.show.escape import cells as columns_of
from ipydevice.show.escape import crop, visible, wrap

MARK, MAYBE = "✗", "?"
MOST_ROWS = 32  # and every rank with a mark; the others are counted
WIDEST_CELL = 48
_ALWAYS = ("rank", "pid", "memory")  # what tells ranks apart is never folded into one line


@dataclass(frozen=True, slots=True)
class Column:
    """One fact of every rank."""

    head: str
    fact: Callable[[RankRow], str]


COLUMNS = (
    Column("rank", lambda row: str(row.rank)),
    Column("host", lambda row: row.host),
    Column("pid", lambda row: str(row.pid)),
    Column("local", lambda row: "" if row.local_rank is None else str(row.local_rank)),
    Column("current", lambda row: f"{row.current}{f' (card {row.card[:12]})' if row.card else ''}"),
    Column("visible", lambda row: f"{row.cards}{f' ({row.visible})' if row.visible is not None else ''}"),
    Column("model", lambda row: ", ".join(row.devices)),
    Column("memory", lambda row: _memory(row)),
    Column("peers", lambda row: _peers(row)),
    Column("back end", lambda row: row.backend),
    Column("NCCL", lambda row: row.nccl),
    Column("world", lambda row: "" if row.world_size is None else str(row.world_size)),
    Column("torch", lambda row: row.torch),
    Column("driver", lambda row: row.driver),
)


@dataclass(frozen=True, slots=True)
class Grid:
    """What both views show."""

    title: str
    remarks: tuple[tuple[str, str], ...]  # label and text
    heads: tuple[str, ...]
    lines: tuple[tuple[tuple[str, str], ...], ...]  # cells, and the mark of each
    left: int  # ranks that aren't listed


def grid(report: RanksReport) -> Grid:
    """The table's content."""
    marks: dict[tuple[int, str], str] = {}
    for trouble in sorted(report.troubles, key=lambda one: one.trouble.certain):
        marks.update({(rank, trouble.column): MARK if trouble.trouble.certain else MAYBE for rank in trouble.ranks})
    marked = {rank for rank, _ in marks}
    shown = [column for column in COLUMNS if any(column.fact(row) for row in report.rows)]
    shared = [column for column in shown if column.head not in _ALWAYS and _is_shared(column, report, marks)]
    own = [column for column in shown if column not in shared]
    listed = [row for n, row in enumerate(report.rows) if n < MOST_ROWS or row.rank in marked][: 4 * MOST_ROWS]
    lines = tuple(tuple((column.fact(row), marks.get((row.rank, column.head), "")) for column in own) for row in listed)
    heads = tuple(column.head for column in own)
    remarks = tuple(_remarks(report, shared))
    return Grid(_title(report), remarks, heads, lines, len(report.rows) - len(listed))


def _is_shared(column: Column, report: RanksReport, marks: dict[tuple[int, str], str]) -> bool:
    return len({column.fact(row) for row in report.rows}) == 1 and column.head not in {head for _, head in marks}


def _title(report: RanksReport) -> str:
    size = len(report.rows) + len(report.missing)
    answered = quantities.plural(size, "rank")
    hosts = len({row.host for row in report.rows})
    where = f" on {hosts} hosts" if hosts > 1 else ""
    missing = f", {len(report.missing)} missing" if report.missing else ""
    wrong = f", {quantities.plural(len(report.troubles), 'thing')} to look at" if report.troubles else ""
    return f"{answered}{where}{missing}{wrong}" + ("" if missing or wrong else ", nothing wrong")


def _remarks(report: RanksReport, shared: list[Column]) -> Iterator[tuple[str, str]]:
    for one in report.missing:
        where = f" ({one.host}, pid {one.pid})" if one.pid is not None else ""
        yield "missing", f"rank {one.rank}{where}: {one.why}"
    for trouble in report.troubles:
        every = len(trouble.ranks) == len(report.rows) > 1 and not report.missing
        yield "✗", f"{'all ranks' if every else ranks_text(trouble.ranks)}: {trouble.trouble}"
    models = Counter(_described(model) for row in report.rows for model in row.models)
    facts = [f"{column.head} {column.fact(report.rows[0])}" for column in shared]
    facts += [f"model {text}" for text, count in models.items() if count == len(report.rows)]
    if facts:
        yield "all" if len(report.rows) > 1 else "this", "; ".join(facts)


def _described(model: ModelRow) -> str:
    wrapped = f"{model.wrapper} of " if model.wrapper else ""
    return f"{model.name} ({wrapped}{model.kind}, {quantities.plural(model.parameters, 'tensor')})"


def ranks_text(ranks: tuple[int, ...]) -> str:
    """ "ranks 0-3, 7"."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    told = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"rank{'s' if len(set(ranks)) > 1 else ''} {told}"


def _peers(row: RankRow) -> str:
    if row.peers is None or row.cards < 2:
        return ""
    return "all" if len(row.peers) == row.cards - 1 else ", ".join(row.peers) or "none"


def _memory(row: RankRow) -> str:
    own = [one for one in row.memory if one.device == row.current]
    elsewhere = [one for one in row.memory if one.device != row.current]
    parts = [quantities.size(one.allocated) + (f" of {quantities.size(one.total)}" if one.total else "") for one in own]
    return " + ".join([*parts, *(f"{quantities.size(one.allocated)} on {one.device}" for one in elsewhere)])


def text(report: RanksReport, *, width: int = 120) -> str:
    """Lines of about `width` columns; long cells are cut in their middle."""
    found = grid(report)
    lines = [found.title]
    for label, words in found.remarks:
        folded = wrap(visible(words), width - 11)
        lines += [f"  {(label if not n else '').ljust(8)} {line}" for n, line in enumerate(folded)]
    body = [[crop(visible(f"{mark} {cell}".strip()), WIDEST_CELL) for cell, mark in line] for line in found.lines]
    table = [list(found.heads), *body]
    wide = [max(columns_of(line[n]) for line in table) for n in range(len(found.heads))]
    lines += [
        "  " + "  ".join(cell + " " * (wide[n] - columns_of(cell)) for n, cell in enumerate(line)).rstrip()
        for line in table
    ]
    if found.left:
        lines.append(f"  and {found.left:,} more without a mark")
    return "\n".join(lines)


def html(report: RanksReport) -> str:
    """The same as a table with header cells; a marked cell says so in words as well as in colour."""
    found = grid(report)
    heads = "".join(f'<th scope="col">{markup.escape(head)}</th>' for head in found.heads)
    lines = "".join(f"<tr>{''.join(map(_cell, line))}</tr>" for line in found.lines)
    remarks = "".join(
        f"<li>{markup.escape(visible(words))}</li>"
        if label == "✗"
        else f"<li><b>{label}</b> {markup.escape(visible(words))}</li>"
        for label, words in found.remarks
    )
    left = f"<p>and {found.left:,} more without a mark</p>" if found.left else ""
    return (
        f"<div><p><b>{markup.escape(found.title)}</b></p><ul>{remarks}</ul>"
        f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>{left}</div>"
    )


def _cell(given: tuple[str, str]) -> str:
    cell, mark = given
    words = markup.escape(visible(cell))
    if not mark:
        return f"<td>{words}</td>"
    return f'<td style="font-weight:bold" title="differs, or looks wrong">{mark} {words}</td>'

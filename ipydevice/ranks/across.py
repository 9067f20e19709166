"""What differs between ranks that should be the same, and what is the same that should differ."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from ipydevice.ranks.report import RankRow, RanksReport, RankTrouble
from ipydevice.show import quantities
from ipydevice.toolbox.troubles import Trouble, some

UNBALANCED = 1.5  # times the median of allocated bytes
CARD = re.compile(r"\b(cuda|xpu|hpu|npu|privateuseone):\d+")
_WORTH_A_WORD = 64 << 20  # bytes more than the median

Parameters = Callable[[int], Mapping[str, str]]  # of a rank: parameters by name, with type and shape

# Facts that all ranks share when all is well: heading, the fact, what to do.
_SAME: tuple[tuple[str, Callable[[RankRow], Any], str], ...] = (
    ("world", lambda row: row.world_size, "all processes have to join one group of one size"),
    ("back end", lambda row: row.backend, "call init_process_group() with the same back end everywhere"),
    ("NCCL", lambda row: row.nccl, "use the same PyTorch everywhere"),
    ("torch", lambda row: row.torch, "use the same PyTorch everywhere"),
    ("driver", lambda row: row.driver, "use the same PyTorch everywhere"),
    ("models", lambda row: tuple((model.name, model.kind, model.wrapper) for model in row.models), ""),
)
# Where the table marks what a rank sees itself; the rest is about its model.
_COLUMNS = {"current_device": "current", "local_rank": "local", "rank": "rank", "too_few_cards": "local",
            "memory_elsewhere": "memory", "cpu_with_nccl": "back end", "cuda_with_gloo": "back end",
            "no_backend": "back end"}  # fmt: skip


def compared(report: RanksReport, parameters: Parameters | None = None) -> RanksReport:
    """The report with what its rows tell together; `parameters` is asked where models differ."""
    rows = report.rows
    found = [*_errors(rows), *_own(rows), *_one_card(rows), *_different(rows), *_numbers(rows)]
    found += [*_models(rows, parameters), *_cards(rows), *_balance(rows)]
    return replace(report, troubles=tuple(found))


def on_any_card(text: str) -> str:
    """The text without the numbers of cards, so that it is the same for processes that do the same on their own."""
    return CARD.sub(r"\1", text)


def _errors(rows: Sequence[RankRow]) -> Iterator[RankTrouble]:
    """What ended them, once for all that failed alike, each with its own card."""
    alike: dict[str, list[RankRow]] = defaultdict(list)
    for row in rows:
        if row.error:
            alike[on_any_card(row.error)].append(row)
    for failed in alike.values():
        text = failed[0].error
        if len({row.error for row in failed}) > 1:
            text += f" (so rank {failed[0].rank}, the others with cards of their own)"
        yield RankTrouble(Trouble(text, "", "error"), tuple(row.rank for row in failed), "rank")


def _own(rows: Sequence[RankRow]) -> Iterator[RankTrouble]:
    """What the ranks see themselves, once for all that see the same."""
    by_kind: dict[str, list[tuple[RankRow, Trouble]]] = defaultdict(list)
    for row in rows:
        for trouble in row.troubles:
            by_kind[trouble.kind].append((row, trouble))
    for kind, told in by_kind.items():
        ranks = tuple(dict.fromkeys(row.rank for row, _ in told))
        first = told[0][1]
        alike = len({trouble.text for _, trouble in told}) > 1
        text = f"{first.text} (so rank {told[0][0].rank}, the others alike)" if alike else first.text
        yield RankTrouble(replace(first, text=text), ranks, _COLUMNS.get(kind, "model"))


def _one_card(rows: Sequence[RankRow]) -> Iterator[RankTrouble]:
    on_card: dict[tuple[str, str], list[RankRow]] = defaultdict(list)
    for row in rows:
        if row.card and row.cards:
            on_card[row.host, row.card].append(row)
    for (host, card), sharing in on_card.items():
        if len(sharing) > 1:
            ranks = tuple(row.rank for row in sharing)
            yield RankTrouble(
                Trouble(
                    f"{len(ranks)} processes work on one card, {card} of {host}: NCCL refuses that, and memory and "
                    "time are shared",
                    "torch.cuda.set_device(local_rank) first of all",
                    "one_card",
                ),
                ranks,
                "current",
            )


def _different(rows: Sequence[RankRow]) -> Iterator[RankTrouble]:
    for column, fact, advice in _SAME:
        counts = Counter(fact(row) for row in rows)
        if len(counts) < 2:
            continue
        usual, most = counts.most_common(1)[0]
        odd = tuple(row.rank for row in rows if fact(row) != usual)
        told = some([f"{_plain(fact(row))} on rank {row.rank}" for row in rows if fact(row) != usual], 2)
        rest = f"{_plain(usual)} on {quantities.plural(most, 'other')}"
        yield RankTrouble(Trouble(f"{column} differs: {told}, {rest}", advice, "differs"), odd, column)


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(" ".join(filter(None, part)) for part in value) or "no model"
    return str(value) if value not in ("", None) else "none"


def _numbers(rows: Sequence[RankRow]) -> Iterator[RankTrouble]:
    used: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in rows:
        if row.local_rank is not None:
            used[row.host, row.local_rank].append(row.rank)
    for (host, local), ranks in used.items():
        if len(ranks) > 1:
            text = f"LOCAL_RANK {local} is given {len(ranks)} times on {host}"
            yield RankTrouble(Trouble(text, "start them with torchrun", "local_rank"), tuple(ranks), "local")


def _models(rows: Sequence[RankRow], parameters: Parameters | None) -> Iterator[RankTrouble]:
    counts = Counter(tuple(model.digest for model in row.models) for row in rows if row.models)
    if len(counts) < 2:
        return
    usual = counts.most_common(1)[0][0]
    odd = [row for row in rows if row.models and tuple(model.digest for model in row.models) != usual]
    like = next(row for row in rows if row.models and tuple(model.digest for model in row.models) == usual)
    detail = ""
    if parameters is not None:
        mine, others = parameters(odd[0].rank), parameters(like.rank)
        names = [name for name in dict.fromkeys([*others, *mine]) if mine.get(name) != others.get(name)]
        if names:
            name = names[0]
            detail = (
                f": {name} is {mine.get(name, 'missing')} on rank {odd[0].rank} and "
                f"{others.get(name, 'missing')} on rank {like.rank}"
            ) + (f", and {len(names) - 1:,} more" if len(names) > 1 else "")
    text = f"the models are not the same{detail}"
    yield RankTrouble(
        Trouble(text, "build them alike on every rank", "models"), tuple(row.rank for row in odd), "model"
    )


def _cards(rows: Sequence[RankRow]) -> Iterator[RankTrouble]:
    """Models of some ranks on the host, of others on cards; cards seen by some only."""
    for column, text, fact in (
        ("model", "the model is on {} here and on {} elsewhere", lambda row: _kinds(row)),
        ("visible", "{} cards are seen here and {} elsewhere", lambda row: row.cards),
    ):
        counts = Counter(fact(row) for row in rows)
        if len(counts) < 2:
            continue
        usual = counts.most_common(1)[0][0]
        odd = [row for row in rows if fact(row) != usual]
        words = text.format(*(value if value not in ("", None) else "nothing" for value in (fact(odd[0]), usual)))
        yield RankTrouble(Trouble(words, "", "differs"), tuple(row.rank for row in odd), column)


def _kinds(row: RankRow) -> str:
    return ", ".join(dict.fromkeys(device.partition(":")[0] for device in row.devices))


def _balance(rows: Sequence[RankRow]) -> Iterator[RankTrouble]:
    held = [row.allocated for row in rows]
    if len(held) < 2:
        return
    middle = median(held)
    heavy = [row for row in rows if row.allocated > UNBALANCED * middle and row.allocated - middle >= _WORTH_A_WORD]
    if heavy:
        worst = max(heavy, key=lambda row: row.allocated)
        yield RankTrouble(
            Trouble(
                f"memory is not balanced: rank {worst.rank} holds {quantities.size(worst.allocated)}, "
                f"the middle is {quantities.size(int(middle))}",
                "rank 0 alone gathers, logs or keeps the checkpoint; or others' tensors were put onto its card",
                "balance",
                certain=False,
            ),
            tuple(row.rank for row in heavy),
            "memory",
        )

"""What kind of mistake it is: one rule per class of the taxonomy, each on facts.

The rules are tried from the most to the least specific; the first that holds gives the
class. A rule reads the finding and asks the tracer, it never guesses by the message's order.
"""

from __future__ import annotations

from collections.abc import Callable

from ipydevice.diagnose.causes import held, made, passed
from ipydevice.diagnose.causes.by_message import by_message
from ipydevice.diagnose.causes.facts import Facts

__all__ = ["RULES", "Facts", "classify"]


Rule = Callable[[Facts], str | None]


def classify(facts: Facts) -> str:
    """The class of the taxonomy, or "unknown"."""
    for rule in RULES:
        found = rule(facts)
        if found is not None:
            return found
    return "unknown"


RULES: tuple[Rule, ...] = (
    by_message,
    held.recorded,
    held.let_go,
    passed.card_of_another_rank,
    held.on_named_card,
    passed.named_card,
    held.optimizer_state,
    passed.discarded,
    held.loss_or_metric_tensor,
    held.module,
    passed.default_card,
    passed.index_of_host_data,
    held.kept_by_object,
    passed.memoised,
    passed.closure,
    passed.rnn_state,
    passed.checkpoint,
    passed.default_device,
    passed.split_model,
    passed.nested_batch,
    passed.collection,
    passed.hardcoded,
    passed.index,
    made.library_result,
    made.fresh,
    passed.mask,
    passed.input,
)

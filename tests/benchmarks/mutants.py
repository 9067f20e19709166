"""Mutation benchmark: is the device decision that was taken back the one that ipydevice names?

    python tests/benchmarks/mutants.py [--every N] [-k PATTERN] [--no-fixes] [--programs-only] [--wrong]

Takes the complete programs of tests/programs and the mended notebooks of tests/cases, takes one device decision back
at a time (tests/caserun/mutation.py), runs each mutant on virtual GPUs and compares the diagnosis with the mutation.

culprit  it names the value that went astray (or a view, a member or the holder of it), or traces what it names back
         to the very line of the mutation
place    the culprit or its origin stands in the mutated cell
cause    is one that this mutation can be called (the sets below)
fix      the first fix lets the notebook run to its end, and its numbers are those of the program on the host alone
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

from case_runner import prepare, scratch  # noqa: E402
from caserun.forks import map_in_forks  # noqa: E402
from caserun.mutant_judge import Outcome, judge, programs  # noqa: E402
from caserun.mutation import mutants  # noqa: E402


def table(outcomes: list[Outcome], with_fixes: bool) -> str:
    kinds: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        kinds[outcome.kind].append(outcome)
        kinds["all"].append(outcome)
    lines = [
        "| mutation | mutants | raise | culprit and place | cause | first fix | one of three |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in sorted(kinds, key=lambda k: (k == "all", k)):
        raised = [o for o in kinds[kind] if o.state == "raises"]
        good = [o for o in raised if not o.culprit and not o.place]

        def share(part: int, whole: int) -> str:
            return f"{part} ({100 * part / whole:.0f} %)" if whole else "-"

        row = [kind, str(len(kinds[kind])), str(len(raised)), share(len(good), len(raised))]
        row.append(share(sum(not o.cause for o in raised), len(raised)))
        row.append(share(sum(not o.fix for o in good), len(good)) if with_fixes else "-")
        row.append(share(sum(o.three for o in good), len(good)) if with_fixes else "-")
        lines.append("| " + " | ".join(row) + " |")
    certain = [o for o in outcomes if o.state == "raises" and o.confidence == "certain"]
    wrong = [o for o in certain if o.culprit or o.place]
    lines.append(f"\n`certain` is said of {len(certain)} and wrong in {len(wrong)}.")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth mutant")
    parser.add_argument("-k", dest="pattern", default="", help="regular expression on the names of the programs")
    parser.add_argument("--kind", default="", help="regular expression on the kinds of mutation")
    parser.add_argument("--no-fixes", action="store_true")
    parser.add_argument("--programs-only", action="store_true", help="leave the mended notebooks of tests/cases out")
    parser.add_argument("--wrong", action="store_true", help="list the mutants of which something is wrong")
    parser.add_argument("--json", type=Path)
    parser.add_argument("-j", dest="parallel", type=int, default=2)
    options = parser.parse_args()
    prepare()
    start = time.perf_counter()
    chosen = programs(options.pattern, options.programs_only)
    jobs = [(p, m, not options.no_fixes) for p in chosen for m in mutants(p.sources) if re.search(options.kind, m.kind)]
    jobs = jobs[:: options.every]
    outcomes = []
    with scratch():
        for (program, mutant, _), outcome in zip(jobs, map_in_forks(judge, jobs, options.parallel), strict=True):
            if isinstance(outcome, Exception):
                text = str(outcome).strip().splitlines()[-1]
                outcome = Outcome(program.name, mutant.before[:60], mutant.kind, "raises", *[f"benchmark: {text}"] * 4)
            outcomes.append(outcome)
            bad = [
                f"      {key}: {getattr(outcome, key)}"
                for key in ("culprit", "place", "cause", "fix")
                if getattr(outcome, key)
            ]
            if options.wrong and outcome.state != "runs" and bad:
                print(
                    f"{outcome.program}: {outcome.kind}: {outcome.mutant}\n      said: {outcome.said}",
                    *bad,
                    sep="\n",
                    flush=True,
                )
    print(table(outcomes, not options.no_fixes))
    print(f"\n{len(chosen)} programs, {len(jobs)} mutants, {time.perf_counter() - start:.0f} s")
    if options.json:
        options.json.write_text(json.dumps([vars(o) for o in outcomes], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

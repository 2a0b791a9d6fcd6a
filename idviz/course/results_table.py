"""The README's results, written between its two marks from ``idviz/pretrained/results/*.json``: tables, then claims.

``python -m idviz.course.results_table`` rewrites that part; ``--check`` says whether it is in step, changing nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from idviz.course.measured import markdown_rows, with_range, with_spread
from idviz.course.results_claims import claims, contexts_past, in_percent
from idviz.folders import PACKAGE
from idviz.lab.studies import Comparison, LengthCurves, RecallScores, Variant
from idviz.numbers.ablation_words import label
from idviz.numbers.measured import FOLDER, saved_result
from idviz.numbers.recall import label as recaller_label
from idviz.numbers.recall import reach_words
from idviz.words import capital, count, listed, number

README = PACKAGE.parent / "README.md"
BEGIN, END = "<!-- results -->", "<!-- /results -->"
NAMES = ("mixers", "ablation", "length", "recall")


# -- tables -----------------------------------------------------------------------------------------------------------
def mixers_table(mixers: Comparison, length: LengthCurves) -> list[str]:
    """Each mixer's size, loss and perplexity, and how its perplexity changes past the trained length."""
    contexts = contexts_past(length, length.mixers[0]) if length.mixers else []
    header = ["mixer", "parameters", "state a layer", "nats per token", "perplexity per token"]
    header += [f"× at {c:,} tokens" for c in contexts]
    rows = []
    for variant in mixers.variants:
        far = length.ratios(variant.mixer) if variant.mixer in length.mixers else {}
        cells = [capital(label(variant)), f"{variant.parameters:,}", f"{variant.state_per_layer:,}"]
        cells += [with_spread(variant.losses), f"{variant.perplexity:.2f}"]
        rows.append(cells + [with_range(far[c]) if c in far else "" for c in contexts])
    caption = (
        f"Language models on {mixers.targets:,} held-out targets of {length.text}: {mixers.tokens_seen:,} tokens "
        f"seen, windows of {mixers.trained_at} tokens, {span(*mixers.seed_counts)} seeds; mean ± standard deviation "
        "over seeds. State: real numbers; softmax's grows, given at that window."
    )
    if any(variant.mixer == "linear" for variant in mixers.variants):
        caption += " Linear attention keeps what its form has room for, d_k·d_v numbers a head."
    if contexts:
        seeds = [len(length.of(mixer)) for mixer in length.mixers]
        caption += (
            f" Last columns: perplexity over that at {length.trained_at} tokens of context, the same {length.targets} "
            f"targets each time, {span(min(seeds), max(seeds))} seed{'s (their range)' if max(seeds) > 1 else ''}."
        )
    return [caption, "", *markdown_rows(header, rows)]


def ablation_table(ablation: Comparison) -> list[str]:
    """Each variant's size and loss, and its difference from the whole layer with the adjusted interval."""
    rows = []
    for variant in (ablation.first, *ablation.ranked):
        apart = ["", "", ""] if variant is ablation.first else _apart(variant)
        sizes = [f"{variant.parameters:,}", f"{variant.state_per_layer:,}"]
        rows.append([capital(label(variant)), *sizes, with_spread(variant.losses), *apart])
    caption = (
        f"The layer without one of its parts: {ablation.tokens_seen:,} tokens seen, {span(*ablation.seed_counts)} "
        "seeds. Differences with 95 % t intervals, paired by seed where the seeds' losses rise and fall together, else "
        f"Welch's. {ablation.comparisons} comparisons: those that the paper makes a claim about are adjusted for the "
        "number of its claims, the others for all."
    )
    header = ["variant", "parameters", "state a layer", "nats per token", "difference", "95 %, adjusted", "interval"]
    return [caption, "", *markdown_rows(header, rows)]


def _apart(variant: Variant) -> list[str]:
    """Mean difference, the adjusted interval's ends, and how it was made."""
    difference, ends = f"{variant.difference:+.3f}".replace("-", "−"), variant.adjusted
    if ends is None:
        return [difference, "one seed", ""]
    low, high = (f"{end + 0.0:+.3f}".replace("-", "−") for end in ends)
    return [difference, f"{low} to {high}", variant.compared.method]


def recall_table(recall: RecallScores) -> list[str]:
    """Each mixer's accuracy against the number of pairs, and how far it is at least 99 %."""
    recallers = recall.recallers("mixers")
    if not recallers:
        return []
    pairs = [n for n in recallers[0].pairs.tolist() if all(n in recaller.pairs for recaller in recallers)]
    header = ["recall, right answers (%)", "state a layer", *[count(n, "pair") for n in pairs], "99 % or more"]
    rows = []
    for recaller in recallers:
        right = [with_spread(in_percent(recaller.at(n)), 1) for n in pairs]
        rows.append([capital(recaller_label(recaller)), f"{recaller.state:,}", *right, reach_words(recaller)])
    seeds = [len(recaller.seeds) for recaller in recallers]
    held_out = "Recall of bindings never seen in training"
    if recall.holds_out == "combinations":
        held_out = "Recall from combinations of keys and values never seen in training"
    caption = (
        f"{held_out}: {recall.depth} layers of width {recall.width}, "
        f"{recall.steps:,} steps on {listed([str(n) for n in recall.trained_pairs])} pairs of {recall.keys} keys and "
        f"{recall.values} values, {span(min(seeds), max(seeds))} seeds, {recall.trained_distances[0]} fillers between; "
        f"guessing gives {number(100 / recall.values)} %, guessing among the values seen 100 % over the number of "
        "pairs."
    )
    return [caption, "", *markdown_rows(header, rows)]


def span(low: int, high: int) -> str:
    """ "3", or "1 to 3"."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


# -- the README -------------------------------------------------------------------------------------------------------
def block(folder: Path) -> str:
    """Everything between the marks. Raises ``ValueError`` where a result is missing."""
    mixers, ablation, length, recall = studies = [saved_result(name, folder) for name in NAMES]
    dates = sorted(study.origin.date for study in studies)
    measured = " to ".join(dict.fromkeys([dates[0], dates[-1]]))
    parts = [
        mixers_table(mixers, length),
        ablation_table(ablation),
        recall_table(recall),
        [f"- {claim}" for claim in claims(mixers, ablation, length, recall)],
        [f"Measured {measured}; `make results` measures everything anew."],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def rewritten(text: str, inside: str) -> str:
    """The README with new results. Raises ``ValueError`` unless both marks are there once, in order."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"README needs one line {BEGIN} and, after it, one line {END}")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{inside}\n{END}{rest.split(END)[1]}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m idviz.course.results_table", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where the README is out of step")
    parser.add_argument("--readme", type=Path, default=README)
    parser.add_argument("--results", type=Path, default=FOLDER)
    options = parser.parse_args(arguments)
    try:
        text = options.readme.read_text("utf-8")
        wanted = rewritten(text, block(options.results))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    if options.check:
        if text != wanted:
            step = "is out of step with the results: python -m idviz.course.results_table"
            print(f"{options.readme.name} {step}", file=sys.stderr)
        return int(text != wanted)
    options.readme.write_text(wanted, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

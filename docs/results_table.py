"""Writes the README's results between its two marks, from ``idviz/pretrained/results/*.json``: numbers, then claims.

``python docs/results_table.py`` rewrites the part; ``--check`` says whether it is in step and changes nothing.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from idviz.explore.pages import ablation
from idviz.explore.pages import recall as recall_limits
from idviz.explore.pages.length import change
from idviz.numbers import recall as recall_numbers
from idviz.numbers.ablation import Variant
from idviz.numbers.length import LengthResult, curves
from idviz.numbers.measured import FOLDER, by, read
from idviz.words import capital, listed, number

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- results -->", "<!-- /results -->"
NAMES = ("mixers", "ablation", "length", "recall")
FLAT, MARKED, EQUAL = 1.02, 1.10, 0.02  # a ratio that counts as flat, one that counts as marked, a share as equal
HOLDS, PART, NOT = "**Holds at our size.**", "**Holds in part.**", "**Does not show at our size.**"


# -- small words ------------------------------------------------------------------------------------------------------
def rows(header: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table, numbers to the right."""
    ruler = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (header, ruler, *body)]


def with_spread(values: np.ndarray, digits: int = 3, sign: bool = False) -> str:
    """Mean ± standard deviation over seeds; the mean alone where there is one seed."""
    plus = "+" if sign else ""
    mean = f"{round(values.mean(), digits) + 0.0:{plus}.{digits}f}".replace("-", "−")  # never a negative zero
    return f"{mean} ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else mean


def with_range(ratios: np.ndarray) -> str:
    """Geometric mean of ratios, and the range of the seeds where there are several."""
    mean = f"{np.exp(np.log(ratios).mean()):.3f}"
    return f"{mean} ({ratios.min():.3f} to {ratios.max():.3f})" if len(ratios) > 1 else mean


def seeds_of(count: int) -> str:
    return f"{count} seeds" if count > 1 else "1 seed"


def span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def percent(share: float) -> str:
    return f"{number(100 * abs(share), 2)} %"


# -- tables -----------------------------------------------------------------------------------------------------------
def length_result(found: Mapping) -> LengthResult:
    return LengthResult(curves(found), "ratio", False, found["targets"], found["tokens"], {}, ())


def ratios(result: LengthResult, mixer: str) -> dict[int, np.ndarray]:
    """Context -> the seeds' ratios of perplexity to that at the trained length."""
    shared, _ = result.mean(mixer, "ratio")
    of = result.of(mixer)
    return {int(c): np.array([curve.ratio[curve.contexts.tolist().index(c), 0] for curve in of]) for c in shared}


def past(result: LengthResult, mixer: str) -> list[int]:
    """The contexts that the table shows: the one nearest to 3.5 times the trained length, and the longest."""
    contexts = [c for c in ratios(result, mixer) if c > result.trained_at]
    if not contexts:
        return []
    nearest = min(contexts, key=lambda c: abs(math.log(c / (3.5 * result.trained_at))))
    return list(dict.fromkeys([nearest, max(contexts)]))


def mixers_table(found: Mapping, length: LengthResult) -> list[str]:
    those, first = ablation.variants(found["mixers"]), found["mixers"]["rows"][0]
    measured = [mixer for mixer in length.mixers if mixer]
    contexts = past(length, measured[0]) if measured else []
    head = ["mixer", "parameters", "state a layer", "nats per token", "perplexity per token"]
    head += [f"× at {c:,} tokens" for c in contexts]
    body = []
    for variant in those:
        cells = [capital(variant.label), f"{variant.parameters:,}", f"{variant.state_per_layer:,}"]
        cells += [with_spread(variant.losses), f"{math.exp(variant.losses.mean()):.2f}"]
        far = ratios(length, variant.mixer) if variant.mixer in measured else {}
        body.append(cells + [with_range(far[c]) if c in far else "" for c in contexts])
    counts = [len(length.of(mixer)) for mixer in measured]
    told = (
        f"Language models on {first['targets']:,} held-out targets of {found['length']['text']}: "
        f"{first['tokens_seen']:,} tokens seen, windows of {first['trained_at']} tokens, "
        f"{span([len(v.seeds) for v in those])} seeds; mean ± standard deviation over seeds. State: real numbers; "
        "softmax's grows, given at that window."
    )
    if "linear" in {variant.mixer for variant in those}:
        told += " Linear attention keeps what its form has room for, d_k·d_v numbers a head."
    if contexts:
        told += (
            f" Last columns: perplexity over that at {length.trained_at} tokens of context, the same {length.targets} "
            f"targets each time, {span(counts)} seed{'s' if max(counts) > 1 else ''} (their range)."
        )
    return [told, "", *rows(head, body)]


def ablation_table(found: Mapping) -> list[str]:
    those, first = ablation.variants(found["ablation"]), found["ablation"]["rows"][0]
    body = []
    for variant in (those[0], *sorted(those[1:], key=lambda v: -v.difference)):
        change = "" if variant is those[0] else with_spread(variant.differences, sign=True)
        body.append([capital(variant.label), f"{variant.parameters:,}", with_spread(variant.losses), change])
    told = (
        f"The layer without one of its parts: {first['tokens_seen']:,} tokens seen, "
        f"{span([len(v.seeds) for v in those])} seeds; the difference is paired by seed."
    )
    return [told, "", *rows(["variant", "parameters", "nats per token", "difference"], body)]


def _distance(found: Mapping) -> int:
    """The first distance that was trained."""
    return int(np.atleast_1d(found["recall"]["task"]["distance"])[0])


def recallers(found: Mapping) -> list:
    """The mixers' variants, held-out bindings."""
    saved, far = found["recall"], _distance(found)
    grouped, by_variant = recall_numbers.groups(saved["rows"]), by(saved["rows"], "variant")
    made = [recall_numbers.recaller(by_variant[name], "mixers", "held-out", far) for name in grouped["mixers"]]
    return [variant for variant in made if variant is not None]


def recall_table(found: Mapping) -> list[str]:
    those, task = recallers(found), found["recall"]["task"]
    if not those:
        return []
    settings = found["recall"]["rows"][0]["settings"]
    pairs = [n for n in those[0].pairs.tolist() if all(n in v.pairs for v in those)]
    head = ["recall, right answers (%)", "state a layer", *[f"{n} pair{'s' * (n > 1)}" for n in pairs], "99 % or more"]
    body = [
        [capital(v.label), f"{v.state:,}", *[with_spread(100 * v.at(n), 1) for n in pairs], recall_limits.reaches(v)]
        for v in those
    ]
    trained, far = listed([str(n) for n in np.atleast_1d(task["pairs"]).tolist()]), _distance(found)
    values = task["values"]
    told = (
        f"Recall of bindings never seen in training: {settings['depth']} layers of width {settings['dim']}, "
        f"{settings['steps']:,} steps on {trained} pairs of {task['keys']} keys and {values} values, "
        f"{span([len(v.seeds) for v in those])} seeds, {far} fillers between; guessing gives {number(100 / values)} %, "
        "guessing among the values seen 100 % over the number of pairs."
    )
    return [told, "", *rows(head, body)]


# -- claims -----------------------------------------------------------------------------------------------------------
def _named(those: Sequence[Variant], name: str) -> Variant | None:
    return next((variant for variant in those if variant.name == name), None)


def _lower(variant: Variant) -> float:
    """By what share the first variant's perplexity lies below this one's."""
    return -math.expm1(-variant.difference)


def _spread_words(variant: Variant) -> str:
    if variant.spread is None:
        return "one seed, which tells no spread"
    return f"{seeds_of(len(variant.seeds))}, spread {percent(math.expm1(variant.spread))}"


def against_s4d(found: Mapping) -> str | None:
    """Perplexity 13 to 16 % below S4D's."""
    first, s4d = ablation.variants(found["mixers"])[0], _named(ablation.variants(found["mixers"]), "s4d")
    if s4d is None:
        return None
    lower = _lower(s4d)
    beyond = s4d.spread is not None and abs(s4d.difference) > s4d.spread
    verdict = HOLDS if beyond and lower >= 0.13 else PART if beyond and lower > 0 else NOT
    word = "lower" if lower >= 0 else "higher"
    tail = "" if beyond else ", within the seeds' spread"
    return (
        f"Paper: perplexity 13 to 16 % below an S4D mixer of equal state. {verdict} Here Interdomain's is "
        f"{percent(lower)} {word} ({_spread_words(s4d)}; states of {first.state_per_layer:,} and "
        f"{s4d.state_per_layer:,} numbers a layer){tail}."
    )


def against_softmax(found: Mapping) -> str | None:
    """About equal at the small end."""
    softmax = _named(ablation.variants(found["mixers"]), "softmax")
    if softmax is None:
        return None
    lower = _lower(softmax)
    within = softmax.spread is not None and abs(softmax.difference) <= softmax.spread
    verdict = HOLDS if abs(lower) <= EQUAL else PART if within or lower > 0 else NOT
    ahead = lower > EQUAL and bool(softmax.clear)
    return (
        f"Paper: about equal to softmax at 125M, ahead at 1.3B. {verdict} Here Interdomain's perplexity is "
        f"{percent(lower)} {'lower' if lower >= 0 else 'higher'} ({_spread_words(softmax)})"
        f"{': ahead, rather than equal' if ahead else ''}."
    )


def past_training(length: LengthResult) -> str | None:
    """Flat to 3.5 times the trained length, where softmax degrades."""
    if not {"interdomain", "softmax"} <= set(length.mixers) or not past(length, "interdomain"):
        return None
    at = past(length, "interdomain")[0]
    ours, softmax = (float(np.exp(np.log(ratios(length, m)[at]).mean())) for m in ("interdomain", "softmax"))
    flat, marked = ours <= FLAT, softmax >= MARKED
    verdict = HOLDS if flat and marked else PART if flat or marked else NOT
    farthest = past(length, "interdomain")[-1]
    more = ""
    if farthest != at:
        both = [float(np.exp(np.log(ratios(length, m)[farthest]).mean())) for m in ("interdomain", "softmax")]
        more = f"; at {number(farthest / length.trained_at)} times {change(both[0])} and {change(both[1])}"
    return (
        f"Paper: flat to 3.5 times the trained length, where softmax degrades markedly. {verdict} Here, at "
        f"{number(at / length.trained_at)} times that length, Interdomain's perplexity is {change(ours)} against its "
        f"own there, softmax's {change(softmax)}{more}."
    )


def query_conditioning(found: Mapping) -> str | None:
    """The query-conditioned readout is the main source of the gain, the dual input a smaller second."""
    those = ablation.variants(found["ablation"])
    fixed, value = _named(those, "fixed_readout"), _named(those, "value_input")
    if fixed is None or value is None:
        return None
    helps = [bool(v.clear) and v.difference > 0 for v in (fixed, value)]
    more = [v for v in those[1:] if v is not fixed and v.clear and v.difference > max(0.0, fixed.difference)]
    parts = [v for v in more if v.name != "denominator"]  # which is an addition, not a part
    verdict = HOLDS if all(helps) and not parts else PART if helps[0] else NOT
    said = [
        f"{ablation.signed(v.difference, 'nats')} without {what}{'' if v.clear else within}"
        for v, what, within in (
            (fixed, "query-conditioning", " (within the seeds' spread)"),
            (value, "the keys as input", " (within the seeds' spread)"),
        )
    ]
    others = f"; more than query-conditioning cost: {listed([v.label for v in more])}" if more else ""
    return (
        "Paper: query-conditioning is the main source of the gain, the dual input a smaller, second one. "
        f"{verdict} Here {' and '.join(said)}{others}."
    )


def recall_below_softmax(found: Mapping) -> str | None:
    """Weaker than softmax: at the most pairs that were asked, where a limit shows first, seed by seed."""
    those = {variant.mixer: variant for variant in recallers(found)}
    if not {"interdomain", "softmax"} <= set(those):
        return None
    ours, softmax = those["interdomain"], those["softmax"]
    most = max(set(ours.pairs.tolist()) & set(softmax.pairs.tolist()))
    trained = max(np.atleast_1d(found["recall"]["task"]["pairs"]).tolist())
    difference = ours.at(most) - softmax.at(most)
    spread = difference.std(ddof=1) if difference.size > 1 else math.inf  # one seed tells no spread
    verdict = HOLDS if difference.mean() < -spread else NOT
    where = ", more than any in training," if most > trained else ""
    right = [f"{with_spread(100 * variant.at(most), 1)} %" for variant in (ours, softmax)]
    linear = those.get("linear")
    other = ""
    if linear is not None and most in linear.pairs:
        other = (
            f" (linear attention, a fixed state too, of {linear.state:,} numbers: "
            f"{with_spread(100 * linear.at(most), 1)} %)"
        )
    return (
        f"Paper: recall is weaker than softmax's. {verdict} Here, at {most} pairs{where} Interdomain's state of "
        f"{ours.state:,} numbers answers {right[0]}, softmax {right[1]}{other}; 99 % or more Interdomain answers "
        f"{recall_limits.reaches(ours)}, softmax {recall_limits.reaches(softmax)}."
    )


def block(folder: Path) -> str:
    """Everything between the marks. Raises ``ValueError`` where a result is missing."""
    found = {name: read(name, folder) for name in NAMES}
    length = length_result(found["length"])
    claims = [
        against_s4d(found),
        against_softmax(found),
        past_training(length),
        query_conditioning(found),
        recall_below_softmax(found),
    ]
    dates = sorted({str(found[name]["measured"]["date"]) for name in NAMES})
    last = f"Measured {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}; `make results` measures everything anew."
    parts = [
        mixers_table(found, length),
        ablation_table(found),
        recall_table(found),
        [f"- {claim}" for claim in claims if claim is not None],
        [last],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def rewritten(text: str, inside: str) -> str:
    """The README with its results replaced. Raises ``ValueError`` where the marks are not there once each, in order."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"README needs one line {BEGIN} and, after it, one line {END}")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{inside}\n{END}{rest.split(END)[1]}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
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
            print(
                f"{options.readme.name} is out of step with the results: python docs/results_table.py", file=sys.stderr
            )
        return int(text != wanted)
    options.readme.write_text(wanted, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

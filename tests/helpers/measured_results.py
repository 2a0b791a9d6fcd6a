"""Small results with numbers that are easy to check, in the shape that the commands write."""

from __future__ import annotations

import json
import math
from pathlib import Path

from idviz.lab.studies import Comparison, LengthCurves, RecallScores

MADE_BY = {"format": 1, "made_by": "a test", "measured": {"date": "2026-01-02"}}
TRAINED = 64


def curve(losses: dict[int, float], half: float = 0.01) -> list[dict]:
    at = losses[TRAINED]
    return [
        {"context": c, "loss": loss, "perplexity": math.exp(loss), "interval": [loss - half, loss + half],
         "ratio": [math.exp(loss - at), math.exp(loss - at - half / 4), math.exp(loss - at + half / 4)]}
        for c, loss in losses.items()
    ]  # fmt: skip


def length() -> dict:
    """Interdomain's two seeds flat but for 1 % at 1024, softmax half as much again, unigram constant."""
    shapes = {
        ("interdomain", 0): {16: 3.1, 64: 3.0, 224: 3.0, 1024: 3.0 + math.log(1.01)},
        ("interdomain", 1): {16: 3.2, 64: 3.1, 224: 3.1, 1024: 3.1 + math.log(1.01)},
        ("softmax", 0): {16: 3.2, 64: 3.0, 224: 3.0 + math.log(1.2), 1024: 3.0 + math.log(1.5)},
        (None, None): {16: 5.0, 64: 5.0, 224: 5.0, 1024: 5.0},
    }
    models = [
        {"model": f"{mixer or 'unigram'}-{seed}", "mixer": mixer, "seed": seed, "trained_at": TRAINED,
         "parameters": 1000, "curve": curve(losses)}
        for (mixer, seed), losses in shapes.items()
    ]  # fmt: skip
    about = {"text": "plays", "held_out": ["macbeth"], "unit": "nats per token", "targets": 512, "seed": 0}
    return {**MADE_BY, **about, "tokens": 20_000, "models": models}


DISTANCES = {"repeat 1-16": 40, "repeat 17-32": 40, "repeat 33-64": 30, "repeat 65-128": 20}  # and their targets


def length_facts() -> dict:
    """Facts: Interdomain forgets beyond 32 tokens, softmax knows half at every distance, the ideal reader all."""
    contexts = (0, 1, 16, TRAINED, 1024)
    known = {"interdomain": (1.0, 0.9, 0.2, 0.1), "softmax": (0.5,) * 4, "ideal": (1.0,) * 4}
    far = {"interdomain": 1.0, "softmax": 1.5, "ideal": 0.5}  # loss at the trained length, and of new facts

    def row(mixer: str | None, seed: int | None) -> dict:
        losses = dict.fromkeys(contexts, 4.0)
        if mixer is not None:
            losses |= {1: 2.0 + far[mixer], 16: 0.5 + far[mixer], TRAINED: far[mixer], 1024: far[mixer]}
        slices = {"first mention": 5, "repeat": 60, **DISTANCES, "rest": 135}
        shares = dict(zip(DISTANCES, known.get(mixer or "", (0.125,) * 4), strict=True))
        answered = {name: round(shares.get(name, 0.5) * targets) for name, targets in slices.items()}
        kinds = {
            name: [
                {"context": c, "loss": loss, "interval": [loss - 0.1, loss + 0.1]}
                | ({"right": answered[name]} if name.startswith("repeat") else {})
                for c, loss in losses.items()
            ]
            for name in slices
        }
        nats = losses[16] - losses[TRAINED]
        gained = {"from": 16, "to": TRAINED, "nats": nats, "interval": [nats - 0.01, nats + 0.01]}
        steps = [[0.02, 0.2], [0.025, 0.3]] if mixer == "interdomain" else None
        return {"model": f"{mixer or 'unigram'}-{seed}", "mixer": mixer, "seed": seed, "trained_at": TRAINED,
                "parameters": 1000, "steps": steps, "curve": curve(losses), "slices": kinds,
                "headroom": {"beyond_16": gained, "beyond_training": None}}  # fmt: skip

    slices = {"first mention": 5, "repeat": 60, **DISTANCES, "rest": 135}
    models = [row("interdomain", 0), row("interdomain", 1), row("softmax", 0), row(None, None)]
    about = {"text": "facts", "held_out": [], "unit": "nats per token", "targets": 200, "seed": 0, "tokens": 205_000}
    more = {"slices": slices, "facts": {"objects": 8}, "floor": row("ideal", None) | {"seed": None}}
    return {**MADE_BY, **about, **more, "models": models}


def study(name: str, losses: dict[str, list[float]], mixers: dict[str, str] | None = None) -> dict:
    rows = [
        {"variant": variant, "seed": seed, "mixer": (mixers or {}).get(variant, "interdomain"), "mixer_options": {},
         "parameters": 1000, "state_per_layer": 256, "trained_at": TRAINED, "tokens_seen": 100_000, "targets": 4000,
         "loss": loss, "interval": [loss - 0.1, loss + 0.1], "history": [[50_000, loss + 1.0], [100_000, loss]]}
        for seed in range(max(map(len, losses.values())))
        for variant, those in losses.items()
        for loss in those[seed : seed + 1]
    ]  # fmt: skip
    return {**MADE_BY, "study": name, "title": name, "rows": rows, "summary": {}}


def ablation() -> dict:
    """The fixed readout costs 0.1, values only 0.02, RoPE nothing that its seeds agree on, the norm helps nobody."""
    losses = {
        "full": [3.0, 3.1, 3.2],
        "fixed_readout": [3.1, 3.2, 3.3],
        "value_input": [3.02, 3.12, 3.22],
        "no_rope": [3.05, 3.05, 3.2],
        "no_norm_bias": [2.95, 3.04, 3.15],
    }
    return study("ablation", losses)


def mixers() -> dict:
    """S4D 15 % higher in perplexity, softmax 1 % lower."""
    s4d, softmax = math.log(1.15), math.log(0.99)
    losses = {
        "interdomain": [3.0, 3.1, 3.2],
        "s4d": [3.0 + s4d, 3.1 + s4d, 3.2 + s4d],
        "softmax": [3.0 + softmax, 3.1 + softmax + 0.001, 3.2 + softmax - 0.001],
    }
    return study("mixers", losses, {"s4d": "s4d", "softmax": "softmax"})


_STEPS, _SLOW = {"step_range": [0.02, 0.3]}, {"step_range": [0.001, 0.1]}
_RECALL = {  # variant: mixer, options, state, {pairs: the seeds' accuracies of held-out bindings at distance 0}
    "interdomain": ("interdomain", {"modes": 16, **_STEPS}, 4096, {4: [1.0, 1.0], 8: [0.99, 1.0], 16: [0.3, 0.5]}),
    "softmax": ("softmax", {}, 8192, {4: [1.0, 1.0], 8: [1.0, 1.0], 16: [1.0, 0.99]}),
    "s4d": ("s4d", {"modes": 32}, 4096, {4: [0.3, 0.2], 8: [0.1, 0.2], 16: [0.1, 0.0]}),
    "small": ("interdomain", {"modes": 4, **_STEPS}, 1024, {4: [0.9, 1.0], 8: [0.2, 0.2], 16: [0.1, 0.1]}),
    "slow": ("interdomain", {"modes": 16, **_SLOW}, 4096, {4: [0.5, 0.6], 8: [1.0, 1.0], 16: [0.1, 0.1]}),
}  # fmt: skip


def _answer(accuracy: float, split: str, pairs: int, distance: int, seed: int) -> dict:
    asked = {"split": split, "pairs": pairs, "distance": distance, "sequences": 64, "seed": seed}
    chances = {"chance": 1 / 64, "chance_among_seen": 1 / pairs}
    return {"accuracy": accuracy, "interval": [accuracy, accuracy], "correct": 1, "asked": 2, **chances, **asked}


def recall() -> dict:
    rows = []
    for seed in range(2):
        for variant, (mixer, options, state, table) in _RECALL.items():
            answers = [
                _answer(1.0 if split == "train" else accuracy[seed] / (1 + distance / 64), split, n, distance, seed)
                for n, accuracy in table.items()
                for distance in (0, 64)
                for split in ("train", "held-out")
            ]
            settings = {"mixer": mixer, "mixer_options": options, "dim": 64, "depth": 2, "heads": 4, "steps": 2000}
            kept = {"variant": variant, "seed": seed, "settings": settings, "parameters": 1000}
            rows.append({**kept, "state_per_layer": state, "seconds": 1.0, "commit": "x", "answers": answers})
    task = {"keys": 64, "values": 64, "fillers": 1, "held_out": 0.25, "pairs": [4, 8], "distance": [0]}
    return {**MADE_BY, "study": "recall", "task": task, "rows": rows}


LOOKUP_TEXTS = {
    "kept": ("Quin plays harp . Ada drinks juice . Ada drinks juice . Quin plays", "harp", 3, 12),
    "lost": (f"Quin plays harp . {'Ada drinks juice . ' * 12}Quin plays", "harp", 3, 52),
}


def lookup(model: str = "interdomain-facts", chosen: tuple[int, int] = (1, 1)) -> dict:
    """160 of 200 facts are within the memory, 20 tokens, of the chosen head, which finds 140 of these and 2 beyond."""

    def counts(texts: int, sentence: int) -> dict:
        return {"texts": texts, "object": sentence // 2, "mixed": sentence, "sentence": sentence, "said": sentence}

    def landing(within: int, beyond: int) -> dict:
        parts = {"within": counts(160, within), "beyond": counts(40, beyond)}
        return (
            counts(200, within + beyond) | parts | {"by_distance": {"1-16": parts["within"], "17-32": parts["beyond"]}}
        )

    heads = [
        {"layer": layer, "head": head, "memory": 20.0, "development": landing(*found), "measured": landing(*found)}
        for layer in (1, 2)
        for head in (1, 2)
        for found in [(140, 2) if (layer, head) == chosen else (20, 1)]
    ]
    examples = [
        {"kind": kind, "text": text, "number": 5, "answer": answer, "object": place, "distance": distance}
        for kind, (text, answer, place, distance) in LOOKUP_TEXTS.items()
    ]
    best = dict(zip(("layer", "head"), chosen, strict=True))
    row = {"model": model, "mixer": "interdomain", "right": 150, "heads": heads, "chosen": best, "examples": examples}
    blind = {"model": "s4d-facts", "mixer": "s4d", "right": 90, "heads": [], "chosen": None, "examples": []}
    return {**MADE_BY, "texts": 200, "tokens": 64, "seed": 0, "facts": {}, "rows": [row, blind]}


def typed(body: dict) -> Comparison | LengthCurves | RecallScores:
    """The typed study of one of the results above."""
    if "models" in body:
        return LengthCurves.from_result(body)
    return RecallScores.from_result(body) if "task" in body else Comparison.from_result(body)


def write(folder: Path) -> None:
    """All but the costs as files."""
    for result in (length, ablation, mixers, recall, lookup):
        (folder / f"{result.__name__}.json").write_text(json.dumps(result()), "utf-8")

"""What the paper reports, as figures of its own: shown apart from what was measured here, never mixed with it."""

from __future__ import annotations

NAME = "arXiv 2605.24330"
SETTING = "its own models, 125M to 1.3B, trained at 4K on FineWeb-Edu"

S4D_LOWER = (0.13, 0.16)  # by what share its perplexity is lower than S4D's, over its sizes

LENGTH = (  # a claim, and its figure; wording for a narrow table
    ("Trained at 4K, read to 14K (3.5×)", "flat; softmax degrades markedly"),
    ("Against S4D, 125M to 1.3B", "perplexity 13 to 16 % lower"),
    ("Against softmax, 1.3B", "perplexity 7.98, softmax 8.63"),
    ("Against softmax, 125M", "about equal"),
)
ABLATION = (("Ablation, 125M", "query-conditioning the main gain, the dual input a smaller one"),)
RECALL = (("Needle in a haystack, exact strings", "weaker than softmax: a limit of any fixed-size state"),)
MIXERS = (("125M to 1.3B", "13 to 16 % below S4D in perplexity, softmax 8.63 to its 7.98 at 1.3B"),)

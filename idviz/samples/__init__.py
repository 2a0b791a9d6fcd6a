"""Things to try idviz on, without PyTorch.

- ``load_signal("eeg")``, ``SIGNALS``: two recordings and five made signals, each a ``Signal``
- ``signal_from_csv(data)``, ``read_column(data)``: a column of your own table; ``Uploaded``: a file that you gave
- ``tokenise(text)``, ``heads(tokens)``: a text as ``Tokens``, with untrained queries, keys and values as ``Heads``
- ``FactsTask()``, ``document(task, length, seed)``: English whose only difficulty is memory; ``IdealReader``: its exact
  probabilities
- ``needle(n_tokens, position)``: synthetic tokens, one of which every query looks for

>>> from idviz.samples import load_signal
>>> len(load_signal("eeg"))
800
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["csv_column", "facts", "files", "ideal_reader", "signals", "text"],
    submod_attrs={
        "csv_column": ["read_column"],
        "facts": ["FactsDocument", "FactsTask", "document", "documents"],
        "files": ["Uploaded"],
        "ideal_reader": ["IdealReader", "read_all"],
        "signals": ["SIGNALS", "Signal", "load_signal", "signal_from_csv"],
        "text": ["Heads", "Tokens", "heads", "needle", "tokenise"],
    },
)

"""Things to try idviz on, without PyTorch.

- ``signals``: recordings and made signals; ``csv_column``: a column of a person's own table
- ``text``: a text as untrained tokens with keys, queries and values
- ``files``: a file that a person gave
"""

"""Benchmarks: ratios within one run, beside their goals.

- ``table``: measuring, the table, JSON; ``exact``, ``ui``, ``learned``: the rows, part by part
"""

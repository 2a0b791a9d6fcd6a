"""Benchmarks: ratios within one run, beside their goals.

- ``table``: measuring, the table, JSON; ``exact``, ``ui``, ``learned``, ``training``: the rows, part by part
"""

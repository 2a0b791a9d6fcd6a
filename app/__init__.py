"""The Streamlit app: ``idviz app`` serves it, ``main.py`` is its script.

- ``main``: navigation; ``start``, ``about``: the two pages that are not explorables
- ``render``: an explorable as a page; ``panel``: its controls; ``state``: its values; ``tokens``: its text in colour
- ``drawing``: pictures, drawn in threads and cached; ``film``: pictures drawn ahead; ``player``: both in the browser
"""

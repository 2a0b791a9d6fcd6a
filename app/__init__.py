"""The Streamlit app. ``idviz app`` serves it; ``main.py`` is its script.

- ``main``: navigation; ``start``, ``about``: the two pages that are not explorables
- ``render``: an explorable as a page; ``panel`` its controls, ``state`` its values, ``tokens`` its coloured words
- ``drawing``, ``film``, ``player``: pictures drawn in threads, films drawn ahead, and what the browser does with them
"""

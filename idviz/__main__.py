"""``python -m idviz`` is the ``idviz`` command."""

from idviz.cli import main

main()

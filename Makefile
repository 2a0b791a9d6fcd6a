# make app        set up .venv (first time: a minute or two) and open the app
# make test       everything this machine can run: units, app, notebooks, browser where Chromium exists
# make test-fast  the units only
# make notebooks  JupyterLab with the course
# make bench      a table of ratios beside their goals
# make lint       ruff, and notebooks in step with their text twins

PYTHON ?= python3
EXTRAS ?= app,learned,lab,notebooks,test
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile

.PHONY: app test test-fast notebooks bench lint picture setup clean

app: setup
	$(BIN)/idviz app

test: setup
	$(PYTEST)

test-fast: setup
	$(PYTEST) -m "not slow"

notebooks: setup
	$(BIN)/idviz lab

bench: setup
	$(BIN)/idviz bench

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m idviz.course.build --check

picture: setup
	$(BIN)/python docs/readme_picture.py

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "idviz needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$(EXTRAS)]'
	@touch $@

clean:
	rm -rf .venv build dist

# make app        set up .venv (first time: a minute or two) and open the app
# make test       everything this machine can run: units, app, notebooks, browser where Chromium exists
# make test-fast  the units only
# make notebooks  JupyterLab with the course
# make bench      a table of ratios beside their goals
# make lint       ruff, import contracts, types; notebooks and README in step with their sources
# make results        the trained models and all measured results anew: about four hours of one idle core. Stop it when you
#                     like; the next time it goes on. RUNS=folder keeps the runs elsewhere, DEVICE=cuda takes a card,
#                     MORE_SEEDS= leaves the length curve at seed 0's models, TARGETS=128 makes it coarser.
# make results-quick  the same commands on tiny settings, and every picture drawn from what they write: minutes

PYTHON ?= python3
EXTRAS ?= app,learned,lab,scale,notebooks,test
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: app test test-fast notebooks bench lint picture results results-quick setup clean

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
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python -m idviz.course.build --check
	$(BIN)/python -m idviz.course.results_table --check

picture: setup
	$(BIN)/python docs/readme_picture.py

RUNS ?= runs
DEVICE ?= auto
TARGETS ?= 512
MORE_SEEDS ?= 1 2
MIXERS := interdomain s4d softmax linear
TINY := $(MIXERS:%=%-tiny)
PRETRAINED := idviz/pretrained
RESULTS := $(PRETRAINED)/results

# The models are bundled in a folder of their own first: the ones there stay until all new ones are ready.
results: setup
	mkdir -p $(RUNS) $(RESULTS)
	$(BIN)/idviz ablate mixers --out $(RUNS)/mixers --json $(RESULTS)/mixers.json --device $(DEVICE)
	$(BIN)/idviz ablate ablation --out $(RUNS)/ablation --json $(RESULTS)/ablation.json --device $(DEVICE)
	$(BIN)/idviz recall recall --out $(RUNS)/recall --json $(RESULTS)/recall.json --device $(DEVICE)
	rm -rf build/models && mkdir -p build/models
	for mixer in $(MIXERS); do \
	  $(BIN)/idviz models --add $(RUNS)/mixers/$$mixer-0 --name $$mixer-tiny --folder build/models || exit; done
	rm -rf $(TINY:%=$(PRETRAINED)/%) && mv build/models/* $(PRETRAINED)
	$(BIN)/idviz length $(TINY) $(foreach seed,$(MORE_SEEDS),$(MIXERS:%=$(RUNS)/mixers/%-$(seed))) --targets $(TARGETS) \
	  --keep $(RUNS)/length --json $(RESULTS)/length.json --device $(DEVICE)
	$(BIN)/idviz cost $(TINY) --json $(RESULTS)/cost.json --device $(DEVICE)
	$(BIN)/python -m idviz.course.results_table

QUICK := build/results-quick

results-quick: export OMP_NUM_THREADS ?= 1
results-quick: setup
	rm -rf $(QUICK) && mkdir -p $(QUICK)/models
	$(BIN)/idviz ablate quick-mixers --out $(QUICK)/mixers --json $(QUICK)/mixers.json --device cpu
	$(BIN)/idviz ablate quick-ablation --out $(QUICK)/ablation --json $(QUICK)/ablation.json --device cpu
	$(BIN)/idviz tune quick-tune --out $(QUICK)/tune --json $(QUICK)/tune.json --device cpu
	$(BIN)/idviz recall quick-recall --out $(QUICK)/recall --json $(QUICK)/recall.json --device cpu
	for mixer in $(MIXERS); do \
	  $(BIN)/idviz models --add $(QUICK)/mixers/$$mixer-0 --name $$mixer-quick --folder $(QUICK)/models || exit; done
	$(BIN)/idviz length $(MIXERS:%=$(QUICK)/models/%-quick) $(MIXERS:%=$(QUICK)/mixers/%-1) --targets 64 \
	  --json $(QUICK)/length.json --device cpu
	$(BIN)/idviz cost $(MIXERS:%=$(QUICK)/models/%-quick) --positions 16,64,256 --json $(QUICK)/cost.json --device cpu
	$(BIN)/idviz train quick-facts --out $(QUICK)/facts --device cpu
	$(BIN)/idviz models --add $(QUICK)/facts --name facts-quick --folder $(QUICK)/models
	$(BIN)/idviz lookup $(QUICK)/models/facts-quick --texts 20 --json $(QUICK)/lookup.json --device cpu
	IDVIZ_RESULTS=$(QUICK) $(BIN)/python -m pytest -q tests/test_results_quick.py

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "idviz needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$(EXTRAS)]'
	@touch $@

clean:
	rm -rf .venv build dist

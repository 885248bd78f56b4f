# make compare: sets everything up and compares every framework that runs here. make test: sets up and tests.
# make list, doctor, check, lint: see 'make help'. PYTHON=python3.12 picks another Python.

PYTHON ?= python3

# The newest CUDA version that the driver supports decides which wheels are installed: none for a GPU without a driver.
CUDA := $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9]*\).*/\1/p')

# Recipes whose packages exclude each other run in different environments. Each has a virtual environment of its own.
ENVIRONMENT ?= main
# Named by the recipes' docstrings, as gpu_cookbook/catalogue.py reads them, which is not installed yet.
comma := ,
ENVIRONMENTS = main $(filter-out main every,$(sort $(subst $(comma), ,$(shell sed -n 's/^Environment: //p' \
	recipes/*/with_*.py))))
ifeq ($(ENVIRONMENT),main)
VENV := .venv
EXTRA := $(if $(CUDA),$(if $(filter 11 12,$(CUDA)),cuda$(CUDA),cuda13),cpu)
else
ifneq ($(filter $(ENVIRONMENT),$(ENVIRONMENTS)),$(ENVIRONMENT))
$(error Unknown environment '$(ENVIRONMENT)'. There are: $(ENVIRONMENTS))
endif
VENV := .venv-$(ENVIRONMENT)
EXTRA := $(ENVIRONMENT)
export GPU_COOKBOOK_ENVIRONMENT := $(ENVIRONMENT)
endif
BIN := $(VENV)/bin

# Six files at a time, which keep two cores busy: most tests start processes that import a framework, on one core, and
# some wait for engines, time limits and each other's processes. Where there is a GPU, one test: they look at how much
# of its memory is free and who uses it. OpenBLAS and OpenMP have one thread in each process: of more, with arrays as
# small as those of the tests, each waits longer for the others than it computes. Where a recipe asks for more of
# OpenMP's, as Numba does, they sleep between calls: turning round and round, as they usually wait, they would keep the
# cores from the other tests. NumPy asks for no huge pages: with them, checks of large arrays, which live for one call
# each, took 8 % longer in all, and some a third. Python may keep what it has compiled, whatever the caller's variables
# say: thousands of processes import the same modules, and compiling them takes two minutes in all.
PYTEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive \
	NUMPY_MADVISE_HUGEPAGE=0 \
	$(BIN)/python -m pytest --numprocesses $(if $(CUDA),0,6)

.PHONY: help extra compare bench check list doctor docs readme locks test test-slow test-all lint clean

help:
	@echo "make compare   set up, then check and measure every framework that runs here (eight minutes, with a GPU ten)"
	@echo "make bench     set up, then compare, store the results in benchmarks/results, and show an overview"
	@echo "make check     set up, then check every recipe"
	@echo "make list      set up, then show what runs here"
	@echo "make doctor    set up, then examine this machine"
	@echo "make docs      set up, then build the site into build/docs"
	@echo "make readme    set up, then draw README's picture from the stored results"
	@echo "make locks     set up, then rewrite locks/, the versions for each kind of machine"
	@echo "make test      set up, lint, then run the tests but for the slow ones (on two cores: about five minutes)"
	@echo "make test-slow set up, then run the slow tests only"
	@echo "make test-all  set up, lint, then run all tests (on two cores: about half an hour)"
	@echo "make lint      set up, then check the style and the types"
	@echo "make clean     remove $(VENV), asv's builds, and the generated pages of the site"
	@echo "ENVIRONMENT=NAME does all this for the recipes of another environment: see gpu-cookbook list"

extra:  # of setup.cfg, for this machine: benchmarks/install.py asks
	@echo $(EXTRA)

compare check list doctor: $(VENV)/installed-$(EXTRA)
	@$(BIN)/gpu-cookbook $@

bench: $(VENV)/installed-$(EXTRA)
	@$(BIN)/gpu-cookbook compare --save; status=$$?; \
	$(BIN)/gpu-cookbook tables --commit $$(git rev-parse HEAD) && exit $$status

docs: $(VENV)/installed-docs
	rm -rf build/docs
	$(BIN)/python -m sphinx -W --keep-going -q docs build/docs
	@echo "The site: build/docs/index.html"

readme: $(VENV)/installed-$(EXTRA)
	$(BIN)/python docs/readme.py

locks: $(VENV)/installed-$(EXTRA)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/python locks/write.py

test: $(VENV)/installed-test lint
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/installed-test
	$(PYTEST) -m slow --durations=25 --durations-min=5

test-all: $(VENV)/installed-test lint
	$(PYTEST) --durations=25 --durations-min=5

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "GPU Cookbook needs Python 3.11 or newer, but this is %d.%d. Choose another one: make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	@# The pip that comes with Python 3.11 and 3.12 cannot resolve the CUDA packages.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

$(VENV)/installed-$(EXTRA): setup.cfg pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRA)]'
	@touch $@

$(VENV)/installed-docs: setup.cfg pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

$(VENV)/installed-test: setup.cfg pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRA),test]'
	@# Matplotlib looks for fonts when it is used first, and says so if that takes long: not in the midst of a test.
	$(BIN)/python -c 'import matplotlib.font_manager' 2>/dev/null
	@touch $@ $(VENV)/installed-$(EXTRA)

clean:
	rm -rf $(VENV) .asv build docs/generated docs/history docs/machines docs/recipes

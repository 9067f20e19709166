# Everything that a newcomer types: make demo, make lab, make test.
# A PyTorch of your own choice: make demo TORCH="torch==2.9.1"

PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV := .venv
OLDEST := .venv-oldest
LAB40 := .venv-lab40
BIN := $(VENV)/bin
BUILD := build
WORKERS ?= 2

# What meets IPython and the kernel itself.
IN_OLDEST := $(addprefix tests/test_,$(addsuffix .py,cells hook magics settings load explain terminal install))

# What a person clicks.
IN_LAB40 := $(addprefix tests/browser/test_,$(addsuffix .py,panel table whole_error))

# What `make test` leaves to `make test-all`.
QUICK := not slow and not second_environment

.PHONY: help demo lab notebooks test test-all bench lint chromium clean
.DELETE_ON_ERROR:

help:
	@echo "make demo      install, run the quickstart in a real kernel, print what a person would see"
	@echo "make lab       the same notebook, live in JupyterLab"
	@echo "make notebooks run the tutorials in real kernels, and store what they show"
	@echo "make test      lint, types and tests, under ten minutes"
	@echo "make test-all  also the slow tests, the oldest supported versions, and JupyterLab 4.0"
	@echo "make bench     speed, as ratios within one run"
	@echo "make lint      ruff and mypy alone"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ipydevice needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ": make demo PYTHON=python3.12")'
	@echo "== A virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# PyTorch first and pinned: the project's own requirement is loose, and would take whatever is newest.
$(VENV)/.torch: $(BIN)/python
	@echo "== PyTorch ($(TORCH)); without a local copy this is a long download"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)" numpy
	@touch $@

$(VENV)/.lab: pyproject.toml $(VENV)/.torch
	@echo "== ipydevice and JupyterLab"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[lab]"
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.torch
	@echo "== ipydevice and what its tests need"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[lab,test,dev]"
	@touch $@ $(VENV)/.lab

$(VENV)/.bench: $(VENV)/.dev
	@echo "== The peers of the benchmarks"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	@touch $@

$(OLDEST)/.ready: tests/oldest.txt pyproject.toml
	@echo "== The oldest supported versions in $(OLDEST)"
	@$(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check "$(TORCH)" numpy
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/oldest.txt -e .
	@touch $@

$(LAB40)/.ready: tests/lab40.txt pyproject.toml
	@echo "== JupyterLab 4.0 in $(LAB40)"
	@$(PYTHON) -m venv $(LAB40)
	@$(LAB40)/bin/python -m pip install --quiet --disable-pip-version-check "$(TORCH)" numpy
	@$(LAB40)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/lab40.txt -e .
	@touch $@

demo: $(VENV)/.lab
	@$(BIN)/python tools/demo.py --output $(BUILD)

lab: $(VENV)/.lab
	@$(BIN)/jupyter lab notebooks/quickstart.ipynb

# The texts that the tests compare too: read the difference before committing it.
notebooks: $(VENV)/.dev
	@IPYDEVICE_REGEN=1 $(BIN)/python -m pytest -q tests/test_tutorials.py

chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "== Chromium, for the tests that click"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >/dev/null; \
	else \
		echo "== No Chromium here: the tests that click will be skipped"; \
	fi

lint: $(VENV)/.dev
	@echo "== ruff, mypy"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict ipydevice

test: lint chromium
	@echo "== Tests"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "$(QUICK)"

test-all: lint chromium $(OLDEST)/.ready $(LAB40)/.ready
	@echo "== Tests, the slow ones too"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not second_environment"
	@echo "== Tests with the oldest supported versions"
	@$(OLDEST)/bin/python -m pytest $(IN_OLDEST)
	@echo "== The tests that click, in JupyterLab 4.0 and Notebook 7.0"
	@$(LAB40)/bin/python -m pytest $(IN_LAB40)

bench: $(VENV)/.bench
	@for bench in tests/benchmarks/bench_*.py; do echo "== $$bench"; $(BIN)/python $$bench || exit 1; done

clean:
	rm -rf $(VENV) $(OLDEST) $(LAB40) $(BUILD)

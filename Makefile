# Every target sets up what it needs inside .venv; a machine with Python 3.11+ and make is enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
TIMES  := .cache/processor_times.json

# bytecode is kept, whatever the shell says: without it each process that tests start compiles all it imports anew
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/bytecode

.PHONY: demo test test-all coverage kernels lint format docs bench clean

demo: $(STAMP)
	$(BIN)/markovia demo

# the second line fails where a family of tests, or all of them, take more processor time than they have
test: kernels
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow" --processor-times $(TIMES)
	$(BIN)/python tests/processor_times.py $(TIMES)

# with Spark, which only its tests need
test-all: kernels $(STAMP)-cluster
	$(BIN)/python -m pytest -n auto --dist loadfile --hypothesis-profile=explore

coverage: kernels
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow" --cov --cov-report=term --cov-fail-under=90

# compiled once and kept on disk, so that the tests do not compile the same thing twice
kernels: $(STAMP)-test
	@$(BIN)/markovia compile

lint: $(STAMP)-lint $(STAMP)-test
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP)-docs
	$(BIN)/sphinx-build -j auto -W --keep-going -b html docs docs/_build/html

bench: $(STAMP)-test
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/graphs.py
	$(BIN)/python benchmarks/loading.py
	$(BIN)/python benchmarks/batches.py
	$(BIN)/python benchmarks/studio.py
	$(BIN)/python benchmarks/serving.py
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/gaussian.py --large
	$(BIN)/python benchmarks/approximate.py
	$(BIN)/python benchmarks/approximate_ising.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/structure.py
	$(BIN)/python benchmarks/bayesian.py
	$(BIN)/python benchmarks/sequences.py
	$(BIN)/python benchmarks/causal.py
	$(BIN)/python benchmarks/deep.py
	$(BIN)/python benchmarks/latent.py
	$(BIN)/python benchmarks/processes.py
	$(BIN)/python benchmarks/decisions.py
	$(BIN)/python benchmarks/pictures.py

# uv installs in a tenth of pip's time; where it cannot be had, or reaches no index, pip does the same
PIP     := $(BIN)/python -m pip --disable-pip-version-check
INSTALL  = @echo "installing $(1)" && ( $(BIN)/uv pip install --quiet --python $(BIN)/python --editable "$(1)" 2>/dev/null \
	|| $(PIP) install --quiet --editable "$(1)" )

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	-@$(PIP) install --quiet --only-binary :all: uv

$(STAMP): pyproject.toml | $(VENV)/bin/python
	$(call INSTALL,.)
	touch $@

$(STAMP)-%: pyproject.toml | $(VENV)/bin/python
	$(call INSTALL,.[$*])
	touch $@ $(STAMP)

clean:
	rm -rf $(VENV) .cache docs/_build .pytest_cache .mypy_cache .ruff_cache .coverage

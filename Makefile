# make demo   set everything up, then the whole loop on the embedded model
# make test   set everything up, then the tests
# Both work from a fresh clone; PYTHON picks the interpreter (3.11 to 3.13).

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/installed
# A native build of llama.cpp dies with SIGILL on virtual machines whose CPU flags promise more than they deliver (AMX).
export CMAKE_ARGS ?= -DGGML_NATIVE=OFF
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: demo test lint install check-tools clean

demo: install
	$(BIN)/ada-tui demo

test: install
	$(BIN)/python -m pytest

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt scripts/check_tools.sh
	@PYTHON=$(PYTHON) sh scripts/check_tools.sh
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,export,demo,dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

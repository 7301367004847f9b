# One command for each thing a newcomer does; `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# A Python 3.11 with the venv module; the lock files are for 3.11 on Linux x86-64.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Two at a time: a test on the backend holds about 0.7 GB and one core.
JOBS ?= 2
LINTED := torchtpu tools agents evals tests docs requirements

.PHONY: help setup migrate test test-slow lint bench conformance ecosystem proof corpus evals evals-fast bot-load docs lock clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):[^#]*## /  make \1\t/' | expand -t 20

setup: $(READY)  ## make .venv and install everything from the lock files

$(READY): requirements/torch-cpu.txt requirements/dev.txt requirements/cuda.txt requirements/wheelhouse.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "Python 3.11 is needed: make PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	# The CPU build of torch where pip can see it: 200 MB, against 3 GB for the default build.
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements/torch-cpu.txt 2>/dev/null || \
		echo "pip cannot get the CPU build of torch here; taking the default build"
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements/dev.txt
	# The default Linux build of torch is for CUDA and does not import without these libraries.
	$(BIN)/python -c 'import torch' 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements/cuda.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip download --quiet --no-deps --require-hashes \
		-r requirements/wheelhouse.txt --dest $(VENV)/wheelhouse
	touch $@

migrate: $(READY)  ## migrate the bundled CUDA example and run it on the device
	$(BIN)/python -m evals.example

lint: $(READY)  ## ruff and mypy
	$(BIN)/ruff check $(LINTED)
	$(BIN)/ruff format --check $(LINTED)
	$(BIN)/mypy torchtpu tools agents

# OMP_NUM_THREADS: the tests already use every core; more threads a test only slow it down.
# TPU_SKIP_MDS_QUERY: with torch_tpu installed and no TPU, a plain backward() on the CPU waits for a
# metadata server that is not there.
test test-slow evals evals-fast: export TPU_SKIP_MDS_QUERY = 1
test test-slow evals evals-fast: export OMP_NUM_THREADS = 1
test: lint  ## lint, then the fast tests
	$(BIN)/pytest -m "not slow" -n $(JOBS) --dist loadfile

test-slow: lint  ## lint, then every test
	$(BIN)/pytest -n $(JOBS) --dist loadfile

bench: $(READY)  ## scan speed against ruff and ast.parse on the installed torch package
	$(BIN)/python -m evals.bench_scan

conformance: $(READY)  ## compare the simulated device with the CPU, two suites in three modes (hours)
	for suite in cases architectures; do for mode in eager fuse compile; do \
		$(BIN)/python -m evals.conformance $$suite --mode $$mode --publish; done; done

ecosystem: $(READY)  ## migrate pinned public repositories; SOURCES=folder with checkouts, WIDE=python with torchvision
	$(BIN)/python -m evals.ecosystem --publish $(if $(SOURCES),--source-dir $(SOURCES)) \
		$(if $(WIDE),--wide-python $(WIDE))

proof: $(READY)  ## compare those repositories, migrated, with their originals; SOURCES and WIDE as above
	$(BIN)/python -m evals.ecosystem.proof --publish $(if $(SOURCES),--source-dir $(SOURCES)) \
		$(if $(WIDE),--wide-python $(WIDE))

corpus: $(READY)  ## judge the rules on pinned packages of other people; SOURCES=wheels, sdists, checkouts; WIDE as above
	$(BIN)/python -m evals.corpus $(if $(SOURCES),--source-dir $(SOURCES)) $(if $(WIDE),--python $(WIDE))

evals: $(READY)  ## score migrations of every task by hidden checks, ours beside two others (hours)
	$(BIN)/torchtpu-agent eval validate
	$(BIN)/torchtpu-agent eval migrate --publish

evals-fast: $(READY)  ## check three quick tasks both ways: as they are they fail on the device, by hand they pass
	$(BIN)/torchtpu-agent eval validate vit-flags gcn-blocks yaml-forecast --jobs $(JOBS)

bot-load: $(READY)  ## 2,000 deliveries to the bot while workers are killed, on SQLite and Postgres (minutes)
	$(BIN)/python -m evals.bot_load --publish

docs: $(READY)  ## regenerate docs/rules.md and docs/cli.md
	$(BIN)/python docs/generate.py

lock:  ## remake the lock files from pyproject.toml (minutes: pip fetches what it has not cached)
	$(BIN)/python requirements/lock.py

clean:  ## remove what the commands above made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis out

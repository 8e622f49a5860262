# The one entry for people and for CI. Writes to .venv/, target/ and dist/ only (and the built
# extension beside its stub); every tool comes from .ci/requirements.txt at an exact version.
#
#   make setup   environment and extension     make demo    the main job on shipped transcripts
#   make test    the whole suite               make check   format, lints, types, stubs
#   make bench   benchmarks                    make wheel   the release wheel, into dist/
#   make soak    the long runs of the stores: killed and racing writers, about ten minutes
#   make browser Chromium for the test of the replay page, on Debian as root
#   make clean   remove what was built

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: setup demo test check bench soak wheel browser clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Cargo profile of the extension that Python imports; the same for every target, so that nothing is
# built twice. Benchmarks and the wheel always use the release profile.
PROFILE ?= release

export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport CONDA_PREFIX

TOOLS := $(VENV)/tools.stamp
EXTENSION := $(VENV)/extension-$(PROFILE).stamp
RUST_SOURCES := $(shell find rust -type f -not -path '*/target/*') Cargo.toml Cargo.lock

# A stamp without its extension (after `git clean`, say) is worth nothing.
ifeq ($(wildcard python/satchel/_core*.so),)
$(shell rm -f $(VENV)/extension-*.stamp)
endif

setup: $(EXTENSION)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(TOOLS): .ci/requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --requirement .ci/requirements.txt
	touch $@

$(EXTENSION): $(TOOLS) pyproject.toml $(RUST_SOURCES)
	rm -f $(VENV)/extension-*.stamp
	PIP_QUIET=1 $(BIN)/maturin develop --profile $(PROFILE)
	touch $@

# Budgets that are tight for each transcript, so that every level is seen.
demo: setup
	$(BIN)/satchel count tests/data/coding.openai.json tests/data/service.openai.json tests/data/korean.anthropic.json
	$(BIN)/satchel window tests/data/coding.openai.json --model gpt-4o --budget 11000
	$(BIN)/satchel window tests/data/service.openai.json --model gpt-4o --budget 2000
	$(BIN)/satchel window tests/data/korean.anthropic.json --model claude-sonnet-4-5 --budget 4200

# Benches run once, untimed: nextest and `cargo test` run criterion in its test mode, and pytest has
# --benchmark-disable among its options.
test: setup
	if cargo nextest --version >/dev/null 2>&1; \
	then cargo nextest run --workspace --all-targets --no-tests=pass; \
	else cargo test --workspace --all-targets; fi
	cargo test --workspace --doc
	$(BIN)/python -m pytest --numprocesses logical --maxprocesses 4 --dist worksteal

check: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/python -m mypy.stubtest satchel._core --mypy-config-file pyproject.toml

bench:
	$(MAKE) setup PROFILE=release
	cargo bench --workspace
	$(BIN)/python -m pytest benches/python --benchmark-enable --benchmark-only
	$(BIN)/python benches/python/bench_foundation.py

# SOAK="--url postgresql://... --url redis://... --kills 1000" runs it over other stores, or longer.
SOAK ?=
soak: setup
	$(BIN)/python benches/python/soak_stores.py $(SOAK)
	$(BIN)/python benches/python/soak_servers.py

# Without it that one test is skipped, and says so.
browser:
	if ! command -v chromium chromium-browser google-chrome >/dev/null; then \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else echo "no Chromium here: the page of the replay is not tested"; fi; fi

wheel: $(TOOLS)
	$(BIN)/maturin build --release --strip --out dist

clean:
	rm -rf $(VENV) target dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks
	rm -f python/satchel/_core*.so
	find python tests benches -name __pycache__ -type d -prune -exec rm -rf {} +

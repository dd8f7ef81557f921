# make demo    measure a real Linux router in a lab of network namespaces (root)
# make test    everything that CI runs (root)
# make setup   what both share: Debian packages, .venv, the engine
#
# Each step does only what is missing; a second run installs nothing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILD := build
CPP := $(shell git ls-files 'engine/*.cc' 'engine/*.h' 2>/dev/null)
# clang-tidy reads the folders that are free of DPDK.
TIDY := $(filter-out %_test.cc,$(wildcard engine/src/net/*.cc engine/src/timing/*.cc engine/src/measure/*.cc engine/src/state/*.cc engine/src/vary/*.cc))

# The fuzz targets need clang, so they have a build of their own.
FUZZ_SECONDS ?= 60
FUZZ_BUILD := build-fuzz

.PHONY: demo test setup test-setup engine check fuzz fuzzers format clean

demo: setup
	$(BIN)/dutperf run examples/demo.yaml

setup: packages-run $(VENV)/.run engine

.PHONY: packages-run packages-test
packages-run:
	@scripts/install-packages scripts/packages-run.txt
packages-test:
	@scripts/install-packages scripts/packages-run.txt scripts/packages-test.txt

$(VENV)/.run: requirements/run.txt pyproject.toml | packages-run
	@echo "setup: Python packages into $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than 3.11" >&2; echo "hint: make PYTHON=python3.11" >&2; exit 3; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/run.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation \
	  --config-settings=wheel.cmake=false -e .
	@touch $@

$(VENV)/.test: requirements/test.txt $(VENV)/.run
	@echo "setup: Python packages for the tests into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/test.txt
	@touch $@

engine: | packages-run
	@[ -f $(BUILD)/build.ninja ] || { echo "setup: configuring the engine"; \
	  cmake -S . -B $(BUILD) -G Ninja -DDUTPERF_TESTS=OFF >/dev/null; }
	@ninja -C $(BUILD) --quiet

test-setup: packages-test setup $(VENV)/.test
	@cmake -S . -B $(BUILD) -G Ninja -DDUTPERF_TESTS=ON >/dev/null
	@ninja -C $(BUILD) --quiet

check: test-setup
	@echo 'clang-format, clang-tidy'
	@clang-format --dry-run -Werror $(CPP)
	@clang-tidy --quiet -p $(BUILD) $(TIDY) 2>$(BUILD)/clang-tidy.log || { cat $(BUILD)/clang-tidy.log; exit 1; }
	$(BIN)/python scripts/check_arrows.py
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check fuzzers
	ctest --test-dir $(BUILD) --output-on-failure
	engine/fuzz/run short
	$(BIN)/pytest

fuzzers: | packages-test
	@[ -f $(FUZZ_BUILD)/build.ninja ] || { echo "setup: configuring the fuzz targets"; \
	  cmake -S . -B $(FUZZ_BUILD) -G Ninja -DCMAKE_CXX_COMPILER=clang++-14 -DDUTPERF_FUZZ=ON \
	    -DDUTPERF_TESTS=OFF >/dev/null; }
	@ninja -C $(FUZZ_BUILD) --quiet fuzzers

# Each target for FUZZ_SECONDS; see engine/fuzz/README.md
fuzz: fuzzers
	engine/fuzz/run $(FUZZ_SECONDS)

format: test-setup
	@clang-format -i $(CPP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(BUILD) $(FUZZ_BUILD) $(VENV)

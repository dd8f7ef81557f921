# make demo    measure a real Linux router, alone and with filters, in a lab (root)
# make test    everything that CI runs (root)
# make setup   what both share: Debian packages, .venv, the engine
#
# Each step says what it does, and does only what is missing; a second run installs nothing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
BUILD := build
CPP := $(shell git ls-files 'engine/*.cc' 'engine/*.h' 2>/dev/null)
# clang-tidy reads the folders that are free of DPDK.
TIDY := $(filter-out %_test.cc,$(wildcard engine/src/net/*.cc engine/src/timing/*.cc engine/src/measure/*.cc engine/src/state/*.cc engine/src/vary/*.cc))

# The fuzz targets need clang, so they have a build of their own.
FUZZ_SECONDS ?= 60
FUZZ_BUILD := build-fuzz

# What each step tells besides: since when, and of what.
export STARTED := $(shell date +%s)
export GOAL := $(or $(firstword $(MAKECMDGOALS)),demo)
STEP := @scripts/step

.PHONY: demo test setup test-setup engine check fuzz fuzzers format clean

demo: setup
	$(STEP) -v -n "see the reasons above, and README.md for what the exit code means" \
	  "measuring examples/demo.yaml" $(BIN)/dutperf run examples/demo.yaml
	$(STEP) "done; next: open the report in a browser, its path is above; more to measure: README.md"

setup: packages-run $(VENV)/.run engine

.PHONY: packages-run packages-test
packages-run:
	$(STEP) -v "Debian packages to run: those that are missing" \
	  scripts/install-packages scripts/packages-run.txt
packages-test:
	$(STEP) -v "Debian packages for the tests: those that are missing" \
	  scripts/install-packages scripts/packages-run.txt scripts/packages-test.txt

$(VENV)/.run: requirements/run.txt pyproject.toml | packages-run
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than 3.11" >&2; echo "hint: make PYTHON=python3.11" >&2; exit 3; }
	$(STEP) "Python environment in $(VENV)" $(PYTHON) -m venv $(VENV)
	$(STEP) "Python packages into $(VENV)" $(PIP) -r requirements/run.txt
	$(STEP) "dutperf into $(VENV)" $(PIP) --no-deps --no-build-isolation \
	  --config-settings=wheel.cmake=false -e .
	@touch $@

$(VENV)/.test: requirements/test.txt $(VENV)/.run
	$(STEP) "Python packages for the tests into $(VENV)" $(PIP) -r requirements/test.txt
	@touch $@

engine: | packages-run
	@[ -f $(BUILD)/build.ninja ] || scripts/step "configuring the engine" \
	  cmake -S . -B $(BUILD) -G Ninja -DDUTPERF_TESTS=OFF
	$(STEP) "the engine: building what has changed" ninja -C $(BUILD) --quiet

test-setup: packages-test setup $(VENV)/.test
	$(STEP) "configuring the engine with its tests" cmake -S . -B $(BUILD) -G Ninja -DDUTPERF_TESTS=ON
	$(STEP) "the engine's tests: building what has changed" ninja -C $(BUILD) --quiet

check: test-setup
	$(STEP) -n "make format" "C++: format" clang-format --dry-run -Werror $(CPP)
	$(STEP) "C++: clang-tidy" clang-tidy --quiet -p $(BUILD) $(TIDY)
	$(STEP) "C++: import arrows" $(BIN)/python scripts/check_arrows.py
	$(STEP) "Python: ruff" $(BIN)/ruff check
	$(STEP) -n "make format" "Python: format" $(BIN)/ruff format --check
	$(STEP) "Python: types" $(BIN)/mypy
	$(STEP) "Python: import arrows" $(BIN)/lint-imports

test: check fuzzers
	$(STEP) "C++: tests" ctest --test-dir $(BUILD) --output-on-failure
	$(STEP) "C++: fuzz targets, a few inputs each" engine/fuzz/run short
	$(STEP) -v "Python: tests, those on the lab among them: most of the time" $(BIN)/pytest
	$(STEP) "all passed; next: commit, or look at what is measured with make demo"

fuzzers: | packages-test
	@[ -f $(FUZZ_BUILD)/build.ninja ] || scripts/step "configuring the fuzz targets" \
	  cmake -S . -B $(FUZZ_BUILD) -G Ninja -DCMAKE_CXX_COMPILER=clang++-14 -DDUTPERF_FUZZ=ON \
	    -DDUTPERF_TESTS=OFF
	$(STEP) "the fuzz targets: building what has changed" ninja -C $(FUZZ_BUILD) --quiet fuzzers

# Each target for FUZZ_SECONDS; see engine/fuzz/README.md
fuzz: fuzzers
	engine/fuzz/run $(FUZZ_SECONDS)

format: test-setup
	@clang-format -i $(CPP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(BUILD) $(FUZZ_BUILD) $(VENV)

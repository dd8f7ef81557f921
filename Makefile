# make demo    measure a real Linux router, alone and with filters, in a lab (root)
# make test    everything that CI runs on this Debian (root)
# make test-long  that, the tests that take long, and the fuzz targets (root)
# make test-debian13  set-up, what shares nothing, and a run in a Debian 13 (root)
# make papers  run the experiments of the papers, half an hour (root)
# make pictures  the pictures of README and documents anew: a demo, some labs (root)
# make setup   what both share: Debian packages, .venv, the engine
# make dist    sdist, wheel and SBOM of the commit that is checked out, in dist/
# make deb     the same as a Debian package, with its Python packages
# make image   the same as an image for containers (root); BASE=debian:12@sha256:..., or made here
# make locks   the sums of Python packages anew, after a version in requirements/ was changed
# make nic-lab  a virtual machine with dutperf and NICs that QEMU emulates, of Debian 13 (root)
# make test-nics  what docs/real-nics.md says, on each of its NICs (root); MODEL=igb: on one
# make vm-image  what the lab linux-vm needs: QEMU, and the image of its virtual machine
#
# Each step says what it does, and does only what is missing; a second run installs nothing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is imported is compiled then: of most packages that is little.
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check --no-compile
# No file but those whose sums are in the list; no wheel is built of what nobody has summed.
LOCKED := --require-hashes --only-binary :all: --no-deps -r
BUILD := build
CPP := $(shell git ls-files 'engine/*.cc' 'engine/*.h' 2>/dev/null)
# clang-tidy reads the folders that are free of DPDK.
TIDY := $(filter-out %_test.cc,$(wildcard engine/src/net/*.cc engine/src/timing/*.cc engine/src/measure/*.cc engine/src/state/*.cc engine/src/vary/*.cc))

# The fuzz targets need clang, so they have a build of their own.
FUZZ_SECONDS ?= 60
FUZZ_BUILD := build-fuzz

# Independent steps run at once, on as many CPUs; so do the compilers and the tests that share
# nothing.
JOBS ?= $(shell nproc)
MAKEFLAGS += --jobs=$(JOBS)

# What each step tells besides: since when, and of what.
export STARTED := $(shell date +%s)
export GOAL := $(or $(firstword $(MAKECMDGOALS)),demo)
STEP := @scripts/step
NINJA := ninja --quiet -j $(JOBS)

.PHONY: demo pictures papers dist deb image test test-long setup test-setup vm-image engine engine-tests check fuzz fuzzers format clean

demo: setup
	$(STEP) -v -n "see the reasons above, and docs/results.md for what the exit code means" \
	  "measuring examples/demo.yaml" scripts/demo $(BIN)/dutperf results/demo-$(shell date +%Y%m%d-%H%M%S)

pictures: $(VENV)/.test engine
	$(STEP) -v "measuring the demo, recording it, and looking at its report" \
	  $(BIN)/python -m tools pictures
	$(STEP) "done; look at docs/report.png and docs/pictures, and commit them"

papers: setup packages-papers
	$(STEP) -v -n "what failed is told above; the others are in the overview" \
	  "running examples/papers" scripts/papers $(BIN)/dutperf results/papers-$(shell date +%Y%m%d-%H%M%S)
	$(STEP) "done; open the overview in a browser, its path is above"

setup: $(VENV)/.run engine

# One installation at a time: the second waits for the first.
.PHONY: packages-run packages-test packages-papers packages-vm packages-nics packages-deb packages-image
packages-run:
	$(STEP) -v "Debian packages to run: those that are missing" \
	  scripts/install-packages scripts/packages-run.txt
packages-papers: packages-run
	$(STEP) -v "Debian packages for examples/papers: those that are missing" \
	  scripts/install-packages scripts/packages-papers.txt
packages-vm: packages-run
	$(STEP) -v "Debian packages for the virtual machine: those that are missing" \
	  scripts/install-packages scripts/packages-vm.txt
packages-deb: packages-run
	$(STEP) -v "Debian packages to build the .deb: those that are missing" \
	  scripts/install-packages scripts/packages-deb.txt
packages-image: packages-deb
	$(STEP) -v "Debian packages to build the image: those that are missing" \
	  scripts/install-packages scripts/packages-image.txt
packages-nics: packages-run
	$(STEP) -v "Debian packages for the lab of NICs: those that are missing" \
	  scripts/install-packages scripts/packages-nics.txt
packages-test: packages-papers packages-vm
	$(STEP) -v "Debian packages for the tests: those that are missing" \
	  scripts/install-packages scripts/packages-test.txt

$(VENV)/.run: requirements/run.txt pyproject.toml | packages-run
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than 3.11" >&2; echo "hint: make PYTHON=python3.11" >&2; exit 3; }
	$(STEP) "Python environment in $(VENV)" $(PYTHON) -m venv $(VENV)
	$(STEP) "Python packages into $(VENV)" $(PIP) $(LOCKED) requirements/run.txt
	$(STEP) "dutperf into $(VENV)" $(PIP) --no-deps --no-build-isolation \
	  --config-settings=wheel.cmake=false -e .
	@touch $@

$(VENV)/.test: requirements/test.txt $(VENV)/.run
	$(STEP) "Python packages for the tests into $(VENV)" $(PIP) $(LOCKED) requirements/test.txt
	@touch $@

$(VENV)/.docs: requirements/docs.txt $(VENV)/.test
	$(STEP) "Python packages for the documents into $(VENV)" $(PIP) $(LOCKED) requirements/docs.txt
	@touch $@

engine: | packages-run
	@[ -f $(BUILD)/build.ninja ] || scripts/step "configuring the engine" \
	  cmake -S . -B $(BUILD) -G Ninja -DDUTPERF_TESTS=OFF
	$(STEP) "the engine: building what has changed" $(NINJA) -C $(BUILD)

# What the compiler and mypy made of the same source before, in any clone: names of files count from
# here.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/dutperf
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
# Not after "engine": the tests' build has flags of its own, everything would be compiled twice.
.PHONY: configured
configured: | packages-test
	$(STEP) "configuring the engine with its tests" \
	  cmake -S . -B $(BUILD) -G Ninja -DDUTPERF_TESTS=ON -DDUTPERF_SANITIZE=ON \
	    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
engine-tests: configured
	$(STEP) "the engine and its tests: building what has changed" $(NINJA) -C $(BUILD)

test-setup: $(VENV)/.test engine-tests vm-image

# Anew when the list or what it is made by changes, or after make clean; never for a newer kernel.
IMAGE := $(BUILD)/vm/release
VM_PACKAGES := scripts/packages-vm-image.txt
vm-image: packages-vm $(IMAGE)
$(IMAGE): $(VM_PACKAGES) src/dutperf/lab/vm_image.py | $(VENV)/.run packages-vm
	$(STEP) "the virtual machine's image" $(BIN)/python -m dutperf.lab.vm_image $(VM_PACKAGES) $(@D)

# Not in parallel: one root is made of the other's .deb.
.PHONY: nic-lab test-nics
nic-lab: $(VENV)/.run | packages-nics
	$(STEP) -v "the lab of NICs in $(BUILD)/nic-lab: some minutes" scripts/nic-lab
test-nics: nic-lab
	$(STEP) -v "NICs: each step of the documents" \
	  $(BIN)/python -m tools nics $(addprefix --model ,$(MODEL))

# What users install, see docs/install.md. Nothing here is of $(VENV) or of the engine in $(BUILD).
PACKAGING := $(BUILD)/packaging-venv
SUMS = $(STEP) "checksums" sh -c 'cd dist && sha256sum dutperf* >SHA256SUMS'
$(PACKAGING)/.tools: requirements/dist.txt | packages-run
	$(STEP) "Python environment in $(PACKAGING)" $(PYTHON) -m venv $(PACKAGING)
	$(STEP) "Python packages into $(PACKAGING)" \
	  $(PACKAGING)/bin/python -m pip install -q --disable-pip-version-check $(LOCKED) requirements/dist.txt
	@touch $@
.PHONY: built-dist built-deb locks
locks: $(PACKAGING)/.tools
	$(STEP) "sums of the versions in requirements/" scripts/lock $(PACKAGING)
built-dist: $(PACKAGING)/.tools
	$(STEP) -v "sdist, wheel and SBOM, with the engine compiled anew: some minutes" \
	  env JOBS=$(JOBS) scripts/build-dist $(PACKAGING)
built-deb: built-dist | packages-deb
	$(STEP) "the .deb" scripts/build-deb
dist: built-dist
	$(SUMS)
	$(STEP) "done: see dist/; to try it in a clean Debian: scripts/try-packages wheel"
deb: built-deb
	$(SUMS)
	$(STEP) "done: see dist/; to try it in a clean Debian: scripts/try-packages deb"
image: built-deb | packages-image
	$(STEP) -v "the image for containers" scripts/build-image $(BASE)
	$(SUMS)
	$(STEP) "done: see dist/"

# The longest first: the others go on beside it.
CHECKS := check-types check-docs check-tidy check-cpp-format check-arrows check-ruff \
  check-python-format check-imports
.PHONY: $(CHECKS)
check: $(CHECKS) test-setup
check-cpp-format: | packages-test
	$(STEP) -n "make format" "C++: format" clang-format --dry-run -Werror $(CPP)
check-tidy: configured
	$(STEP) "C++: clang-tidy, what has changed" sh -c 'printf "%s\n" "$$@" | \
	  xargs -n 1 -P $(JOBS) scripts/tidy $(BUILD)' - $(TIDY)
check-arrows: $(VENV)/.test
	$(STEP) "C++: import arrows" $(BIN)/python scripts/check_arrows.py
check-ruff: $(VENV)/.test
	$(STEP) "Python: ruff" $(BIN)/ruff check
check-python-format: $(VENV)/.test
	$(STEP) -n "make format" "Python: format" $(BIN)/ruff format --check
check-types: $(VENV)/.test
	$(STEP) "Python: types" $(BIN)/mypy --cache-dir "$(CACHE)/mypy"
check-imports: $(VENV)/.test
	$(STEP) "Python: import arrows" $(BIN)/lint-imports
# Into site/. Without its advertisement, which is no warning of ours.
check-docs: $(VENV)/.docs
	$(STEP) "documents: the site, each link and anchor" env NO_MKDOCS_2_WARNING=1 \
	  $(BIN)/mkdocs build --strict --quiet

# The Python tests come when nothing else runs: among them is the lab.
test-long: fuzz-short
test-long: LONG := long
test test-long: check cpp-tests
	$(STEP) -v "Python: tests, those on the lab among them: most of the time" \
	  scripts/test-python $(BIN)/pytest $(JOBS) $(LONG)
	$(STEP) "all passed; next: commit, or look at what is measured with make demo"

# The release that this machine has not; its root is kept, see scripts/in-debian.
.PHONY: test-debian13 test-elsewhere
test-debian13: | packages-nics
	$(STEP) -v "in a Debian 13" scripts/in-debian trixie make test-elsewhere
# What others do on these CPUs may make one invalid (exit code 1): not two in a row.
A_RUN := $(BIN)/dutperf throughput --lab known-answer --quick --ip 4
test-elsewhere: cpp-tests $(VENV)/.test
	$(STEP) -v "Python: tests that share nothing" $(BIN)/pytest -q -n $(JOBS) --dist worksteal \
	  -m "not (lab or engine or browser or long)"
	$(STEP) -v "a run" sh -c '$(A_RUN) || { [ $$? = 1 ] && $(A_RUN); }'

.PHONY: cpp-tests fuzz-short
# With ASan and UBSan, in the same build: what is free of DPDK is compiled for its tests alone, apart
# from the engine, so a plain build of them beside this one would only cost time. The fuzz targets'
# build has other flags and another compiler; objects that count coverage would slow down the tests.
cpp-tests: engine-tests
	$(STEP) "C++: tests" ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)
fuzz-short: fuzzers
	$(STEP) "C++: fuzz targets, a few inputs each" engine/fuzz/run short

fuzzers: | packages-test
	@[ -f $(FUZZ_BUILD)/build.ninja ] || scripts/step "configuring the fuzz targets" \
	  cmake -S . -B $(FUZZ_BUILD) -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DDUTPERF_FUZZ=ON \
	    -DDUTPERF_TESTS=OFF
	$(STEP) "the fuzz targets: building what has changed" $(NINJA) -C $(FUZZ_BUILD) fuzzers

# Each target for FUZZ_SECONDS, see engine/fuzz/README.md; then the Python parsers as long
fuzz: fuzzers $(VENV)/.test
	engine/fuzz/run $(FUZZ_SECONDS)
	scripts/fuzz-python $(BIN)/pytest $(FUZZ_SECONDS)

format: $(VENV)/.test | packages-test
	@clang-format -i $(CPP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(BUILD) $(FUZZ_BUILD) $(VENV) dist site

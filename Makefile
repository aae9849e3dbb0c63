# `make demo` and `make test` do everything on a machine that has Python, pip, make and (better) a C++ compiler.
PYTHON ?= python3
# Where pip finds torch, e.g. TORCH_SOURCE="--index-url https://download.pytorch.org/whl/cpu" for the CPU build on Linux.
TORCH_SOURCE ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# Python compiles the modules that are ever used when they are first used; pip would compile all of them, for a minute.
INSTALL := $(PIP) install --no-compile
# HASHED=1: every file that pip takes must have the hash in .ci/*.lock (Linux, x86-64, Python 3.11, torch for the CPU). CI does so.
HASHED ?=
NATIVE := CMakeLists.txt $(wildcard src/csrc/*)

.PHONY: demo test lint suite docs sanitized audit clean

demo: $(VENV)/.installed
	$(BIN)/gamma demo
	@echo 'Here gamma is $(BIN)/gamma; after ". $(BIN)/activate" it is gamma.'

# Types are checked beside the tests: alone they would leave the other cores idle.
test: $(VENV)/.installed-dev
	$(MAKE) -j2 lint suite

# A process per core: every test computes with one thread. One that has done its share takes over from the others.
suite: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.installed-dev
	$(BIN)/mkdocs build --strict

# Without site (-S): an editable installation takes the place of whatever PYTHONPATH says, and the usual module would be tested.
SANITIZED_TESTS := import sys, pytest, torch, gamma_kg._native as n; assert "/sanitized/" in n.__file__, n.__file__; \
	sys.exit(pytest.main(["tests/kernels", "tests/graph/test_neighbourhoods.py"]))
# The kernels' tests with a native module that reports reads and writes outside their arrays, and what the language leaves undefined.
sanitized: $(VENV)/.installed-dev
	cmake -S . -B build/sanitized -DCMAKE_BUILD_TYPE=Release -DGAMMA_SANITIZE=address,undefined -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	cmake --build build/sanitized -j
	rm -rf build/sanitized/package && mkdir -p build/sanitized/package && cp -r src/gamma_kg build/sanitized/package/
	rm -f build/sanitized/package/gamma_kg/_native*.so && cp build/sanitized/_native*.so build/sanitized/package/gamma_kg/
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	PYTHONPATH=$(CURDIR)/build/sanitized/package:$$($(BIN)/python -c 'import sys; print(":".join(sys.path[1:]))') \
	$(BIN)/python -S -c '$(SANITIZED_TESTS)'

# torch first and by its exact version: what depends on torch would otherwise bring the newest CUDA build along.
$(VENV)/.torch: constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(if $(HASHED),$(INSTALL) --no-deps --require-hashes -r .ci/torch.lock,$(INSTALL) $(TORCH_SOURCE) $$(grep '^torch==' constraints.txt))
	touch $@

ifeq ($(HASHED),)
# The package is installed in place, so only a change of its metadata or of the native code needs this again.
$(VENV)/.installed: $(VENV)/.torch pyproject.toml $(NATIVE)
	$(INSTALL) -c constraints.txt -e .[serve]
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(INSTALL) -c constraints.txt -e .[dev,docs,track,serve,mcp]
	touch $@
else
# What builds the package is in the lock too, so it is built without fetching anything else.
$(VENV)/.locked: $(VENV)/.torch .ci/requirements.lock
	$(INSTALL) --no-deps --require-hashes -r .ci/requirements.lock
	touch $@

$(VENV)/.installed: $(VENV)/.locked pyproject.toml $(NATIVE)
	$(INSTALL) --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip check
	touch $@
endif

# Known weaknesses of what CI installs; asks the package index, so it wants a network (pip install pip-audit).
audit:
	pip-audit --no-deps --disable-pip --require-hashes -r .ci/requirements.lock

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

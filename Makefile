# Every chore by one word; CI calls the same words. Choose another Python with PYTHON=python3.12 make test.
.DEFAULT_GOAL := help
.PHONY: help setup demo quick test test-all interop jobs clouds connect cluster compat lab mutants bench bench-quick docs docs-serve dist lint format check-types check clean distclean

# A Spark or a path of the shell's own would shadow the packages in .venv; and without bytecode that is kept, each of
# pytest's workers compiles all tests again.
unexport PYTHONPATH SPARK_HOME SPARK_CONF_DIR PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
PYTHON ?= $(shell test -x $(BIN)/python && echo $(BIN)/python || echo python3)
JOBS ?= 2
ARGS ?=

# How long the writers race in `make clouds` (RACE_SECONDS=1800 for half an hour) and the engines in `make interop`.
RACE_SECONDS ?= 150
ENGINES_SECONDS ?= 60

READY := $(PYTHON) tools/setup.py
WITH_JAVA := . .venv/.anabranch-env &&
PYTEST := $(BIN)/python -m pytest --durations=10
# The tests of a file stay in one process, since they share what is made once for them; files with slow ones go first.
BY_FILE := --dist loadfile --no-loadscope-reorder

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv with everything that the other targets need, and find or install Java, Azurite and Chromium
	@$(READY) --java --azurite --browser spark demo dev
	@$(WITH_JAVA) $(BIN)/python -m tests.support.class_archive

demo: ## Run the demonstration; ARGS are handed to it
	@$(READY) --java spark demo
	@$(WITH_JAVA) $(BIN)/anabranch demo $(ARGS)

# Each of the processes has a Spark of its own.
# pytest's exit code 5 means that no test was chosen, as when ARGS names files of one half only.
define RUN_TESTS
	@$(WITH_JAVA) { plain=0; spark=0; \
	$(PYTEST) -m "not spark" -n $(JOBS) $(BY_FILE) $(1) $(ARGS) || plain=$$?; \
	$(PYTEST) -m spark -n $(JOBS) $(BY_FILE) $(1) $(ARGS) || spark=$$?; \
	case "$$plain,$$spark" in \
		0,0|0,5|5,0) exit 0 ;; \
		0,*|5,*) exit $$spark ;; \
		*) exit $$plain ;; \
	esac; }
endef

quick: ## The inner loop, within a minute: tests that need no JVM, no other program and no patience; ARGS go to pytest
	@$(READY) spark demo dev
	@$(PYTEST) -m "not spark" -n $(JOBS) $(BY_FILE) --tier=quick $(ARGS)

test: setup ## What CI runs: each behaviour once, of cases and examples a choice; ARGS go to pytest
	$(call RUN_TESTS,--tier=test)

test-all: setup ## Every case and every example of every test, the long races too; ARGS go to pytest
	$(call RUN_TESTS,--tier=all)

interop: ## Run the tests against other engines only, real delta-spark among them; ARGS go to pytest
	@$(READY) --java --azurite --interop spark demo dev
	@$(WITH_JAVA) ANABRANCH_INTEROP=required ANABRANCH_ENGINES_SECONDS=$(ENGINES_SECONDS) $(PYTEST) -m interop $(ARGS)

# The libraries come from the package index and from git; minutes for each, on each engine.
jobs: ## Run the tests of libraries written on delta-spark, on it and on Anabranch; ARGS such as --only mack
	@$(READY) --java --interop spark demo dev
	@$(WITH_JAVA) PYTHONPATH=tools $(BIN)/python -m jobs $(ARGS)

clouds: ## Run the tests against local servers of S3, Azure, Google Cloud and HDFS only; RACE_SECONDS, ARGS
	@$(READY) --java --azurite --connectors --servers --bare-python spark demo dev hdfs
	@$(WITH_JAVA) ANABRANCH_CLOUDS=required ANABRANCH_RACE_SECONDS=$(RACE_SECONDS) $(PYTEST) -m clouds -rs $(ARGS)

DOORS := tests/api tests/catalog tests/sql tests/streaming tests/system

# About a quarter of an hour. One of its files brings a second server, which has this package, for streams.
connect: ## Run the tests of the doors on Spark Connect, on a server without this package; ARGS go to pytest
	@$(READY) --java --bare-python spark demo dev
	@$(WITH_JAVA) ANABRANCH_CONNECT=required SPARK_CONNECT_MODE_ENABLED=1 $(PYTEST) $(DOORS) -m spark --tier=test -rs $(ARGS)

cluster: ## Run the tests on a standalone cluster whose workers have no package of ours; ARGS go to pytest
	@$(READY) --java --bare-python spark demo dev
	@$(WITH_JAVA) ANABRANCH_CLUSTER=required $(PYTEST) -m cluster -rs $(ARGS)

compat: ## Run the tests of the doors on each supported PySpark and Python; ARGS are pairs, such as 4.0:3.11
	@$(READY) --java spark demo dev
	@$(WITH_JAVA) $(BIN)/python tools/compat.py $(ARGS)

# About an hour on two cores: 200,000 histories, the mutants, 20,000 of programs, 20,000 strangers, 10,000 damaged files,
# 300 kills, 10,000 histories without Spark, 300 on Spark, 100 kills of streams; then what the other tests take a choice of: the grid of maintenance on each kind of table, the model
# of the cut, random conditions.
lab: setup ## Run the laboratory; ARGS go to its first part (--histories, --first, --seed)
	$(BIN)/python -m laboratory $(ARGS)
	$(BIN)/python -m laboratory.programs
	$(BIN)/python -m laboratory.several_statements --mutants
	$(BIN)/python -m laboratory.strangers
	$(BIN)/python -m laboratory.mutations
	$(BIN)/python -m laboratory.kills --kills 300
	$(BIN)/python -m laboratory.kills --kills 100 --in-blocks
	$(BIN)/python -m laboratory.in_arrow
	$(BIN)/python -m laboratory.several_tables
	@$(WITH_JAVA) $(BIN)/python -m laboratory.differential --spark 200
	@$(WITH_JAVA) $(BIN)/python -m laboratory.on_spark --histories 300
	@$(WITH_JAVA) $(BIN)/python -m laboratory.stream_kills
	ANABRANCH_GRID=whole ANABRANCH_EXAMPLES=1000 $(PYTEST) -q -n $(JOBS) -m "not spark" \
		tests/transaction/test_grid_of_maintenance.py tests/transaction/test_cut.py tests/expressions/test_terms.py

# Hours on two cores, and as much again where a tier is measured first. It writes build/mutants, and goes on there when
# it is run again.
mutants: ## Change decision code in a drawn sample of places, and count what the tests notice; ARGS such as --count 300
	@$(READY) --java --azurite --browser spark demo dev mutants
	@$(WITH_JAVA) $(BIN)/python -m tools.mutants --jobs $(JOBS) $(ARGS)

# Hours on two cores; wants a machine that does nothing else. It writes benchmarks/results, docs/benchmarks.md and its plot.
bench: ## Run all benchmarks beside delta-spark, deltalake and plain Parquet; ARGS are handed to them
	@$(READY) --java --interop spark dev bench
	@$(WITH_JAVA) $(BIN)/python -m benchmarks $(ARGS)

bench-quick: ## Run a choice of the benchmarks at a tenth of the size, within minutes; nothing is kept
	@$(READY) --java --interop spark dev bench
	@$(WITH_JAVA) $(BIN)/python -m benchmarks --quick $(ARGS)

# A broken link, or a page that the site's map lacks, is an error.
docs: build/timeline.html ## Build the documentation as a site that works offline, in build/site; ARGS are handed to mkdocs
	@$(READY) docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict $(ARGS)

# The site shows what happened in the demonstration as a live page.
build/timeline.html:
	@$(READY) --java spark demo
	@rm -rf build/demo
	@$(WITH_JAVA) $(BIN)/anabranch demo --keep build/demo
	@$(BIN)/anabranch timeline build/demo/flights -o $@

docs-serve: ## Show the documentation at http://127.0.0.1:8000, built anew when a page changes
	@$(READY) docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve $(ARGS)

dist: ## Build the sdist and the wheel, check and try them on each declared Python; ARGS such as --no-spark
	@$(READY) --java dist
	@$(WITH_JAVA) $(BIN)/python tools/dist.py $(ARGS)

lint: ## Check style, formatting, types and the storeys
	@$(READY) spark demo dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-logo

format: ## Bring style and formatting in order
	@$(READY) spark demo dev
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

check-types: ## Check types only
	@$(READY) spark demo dev
	$(BIN)/python -m mypy

check: lint test ## What CI runs, and in this order

clean: ## Remove caches and what Spark leaves behind
	rm -rf build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf artifacts derby.log metastore_db spark-warehouse
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean ## Remove .venv as well
	rm -rf .venv

# The project's commands. `make` alone lists them.

PYTHON  ?= $(shell command -v python3.11 || command -v python3)
WORKERS ?= auto
PORT    ?= 8080

VENV := .venv
BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help venv demo up down status env test check format bench clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/.jars ## make the environment in .venv (redone when the pinned requirements change)

demo: venv ## the shipped queries on samples, then a generated night through Airflow
	@$(BIN)/python queries/demo.py
	@$(BIN)/python -m dags.parts.demo

up: venv ## start Airflow, its database and Spark on this machine (PORT=8081 for another port)
	@$(BIN)/trends up --port $(PORT)

down: venv ## stop them, and the tasks that run
	@$(BIN)/trends down

status: venv ## say what of them runs, and how it is
	@$(BIN)/trends status

env: ## generate the secrets of docker-compose.yml, and its first night, in .env
	@$(PYTHON) -m pipeline.services.secrets_file .env

test: venv ## run the tests (WORKERS=2 for two processes)
	@$(BIN)/python -m pytest -n $(WORKERS)

check: venv ## lint, formatting and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: venv ## format the code and sort the imports
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

bench: $(VENV)/.bench ## measure all that docs/benchmarks.md shows (some 100 minutes; BENCH=--quick for the easy points)
	@$(BIN)/python -m benchmarks $(BENCH)

clean: ## remove the environment and everything generated
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Two steps, so that a change of pyproject.toml does not install everything again.
$(VENV)/.dependencies: requirements.txt requirements-airflow.txt requirements-dev.txt
	@echo "making $(VENV) with $(PYTHON)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "Python 3.11 is needed: make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install $(addprefix --requirement ,$(filter %.txt,$^))
	@touch $@

$(VENV)/.installed: $(VENV)/.dependencies pyproject.toml
	@$(PIP) install --no-deps --editable .
	@touch $@

# What is only measured against.
$(VENV)/.bench: requirements-bench.txt $(VENV)/.jars
	@$(PIP) install --requirement $<
	@touch $@

# Spark itself fetches the jars, so it must be there; what is there already is not fetched again.
$(VENV)/.jars: $(VENV)/.installed pipeline/jars.py pipeline/LinkedLogStore.scala
	@$(BIN)/python -m pipeline.jars
	@touch $@

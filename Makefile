# `make play` trains a snake, measures it, serves it and plays it; `make test` runs the tests. Both set everything up first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: play test test-long programs clean

play: $(INSTALLED)
	$(BIN)/procsnake quickstart

test: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest

test-long: $(INSTALLED) programs
	PROCSNAKE_EXAMPLES=10000 $(BIN)/python -m pytest tests/envs/battlesnake/test_properties.py
	$(BIN)/python -m pytest -m long

programs:
	@missing=; \
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing=chromium; \
	command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
	[ -z "$$missing" ] || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; } || \
	  { echo "test-long: these are missing and could not be installed. As root: apt-get install -y $$missing" >&2; exit 1; }

$(INSTALLED): setup.py constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 10) <= sys.version_info[:2] <= (3, 13) else "procsnake needs Python 3.10 to 3.13; say which: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) *.egg-info .pytest_cache .ruff_cache .hypothesis

# `make play` trains a snake, measures it, serves it and plays it; `make test` runs the tests. Both set everything up first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: play test test-long clean

play: $(INSTALLED)
	$(BIN)/procsnake quickstart

test: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest

test-long: $(INSTALLED)
	PROCSNAKE_EXAMPLES=10000 $(BIN)/python -m pytest tests/envs/battlesnake/test_properties.py

$(INSTALLED): setup.py constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 10) <= sys.version_info[:2] <= (3, 13) else "procsnake needs Python 3.10 to 3.13; say which: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) *.egg-info .pytest_cache .ruff_cache .hypothesis

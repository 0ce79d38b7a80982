# `make play` trains a snake, measures it, serves it and plays it; `make test` runs the tests. Both install what they need first.
# TORCH=cuda installs torch for an NVIDIA GPU, TORCH=cpu for the processor alone; by default it depends on whether there is a GPU.
PYTHON ?= python3
TORCH ?= auto
VENV ?= .venv
BIN := $(VENV)/bin
# What has been installed: a server's needs, training's, and the tests'. Each has what the one before it has.
SERVE := $(VENV)/.serve
PLAY := $(VENV)/.play
INSTALLED := $(VENV)/.installed

PYTHONS := 3.10 3.11 3.12 3.13
TENSORFLOW := .venv-tensorflow
MXNET := .venv-mxnet
CLUSTER := .venv-cluster
SAGEMAKER := .venv-sagemaker
CLIENTS := .venv-clients
LONG := $(BIN)/python -m pytest -m long
ENGINES := tests/train/engines
LEGACY := tests/serve/aicrowd/test_legacy.py tests/serve/aicrowd/test_ray_settings.py
SDK := tests/train/sagemaker/test_sdk.py
# The long tests in parts: `.ci/run` takes one of them each day.
LONG_machines := tests/train/cluster tests/train/sagemaker --ignore=$(SDK)
LONG_rllib := tests/train/rllib
LONG_comparison := tests/train/comparison tests/train/tuning
LONG_training := tests/train $(patsubst %,--ignore=tests/train/%,cluster sagemaker rllib comparison tuning engines)
LONG_benchmarks := tests/benchmarks
LONG_serve := tests/serve $(LEGACY:%=--ignore=%)
LONG_pages := tests/docs tests/notebooks
LONG_others := tests $(patsubst %,--ignore=tests/%,train benchmarks serve docs notebooks clients)
ALONE := long-machines long-rllib long-comparison
BESIDE := long-training long-benchmarks long-serve long-pages long-others
# Each of these has an environment of its own: an extra, other people's libraries, or the competition's old Ray.
OUTSIDE := legacy mxnet tensorflow sdk clients
# What another Python breaks first: names of the language, files, worlds and agents, settings.
LANGUAGE := tests/test_imports.py tests/envs/common tests/envs/battlesnake/test_gym_env.py tests/envs/procgen/test_vector_env.py \
  tests/agents/test_bundle.py tests/agents/test_registry.py tests/agents/measure/tournament/test_strangers_stores.py tests/train/settings
# What needs MXNet, and what shows that NumPy 1.26, which users of MXNet and of the extra `procgen` have, does as well as NumPy 2.
NUMPY_1 := tests/agents/networks/test_mxnet_runtime.py tests/train/test_mxnet_dqn.py tests/envs/procgen \
  tests/train/comparison/test_battlesnake_benchmark.py::test_finished_seeds_are_not_run_again \
  tests/benchmarks/test_commands.py::test_the_mxnet_benchmark_runs

.PHONY: play install install-serve test test-fast coverage checks tests test-long test-outside \
  $(ALONE) $(BESIDE) long-properties test-python language $(OUTSIDE:%=outside-%) legacy-test test-engines test-trackers docs pictures notebooks outputs hosted-notebooks locks programs clean

play: $(PLAY)
	$(BIN)/procsnake quickstart

# The same without a first snake, and what a server alone needs.
install: $(PLAY)
install-serve: $(SERVE)

# mypy has one core only, and so stands beside the tests.
test: $(INSTALLED)
	$(MAKE) --jobs=2 checks tests

checks: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Three processes for two cores, because tests wait for what they have started.
tests: $(INSTALLED)
	$(BIN)/python -m pytest --numprocesses=3 --dist=worksteal

# For the inner loop: each room's quick tests.
test-fast: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/python -m pytest --numprocesses=2 --dist=worksteal -m "not long and not slow"

# Branch coverage of the quick tests, or of some: make coverage TESTS=tests/agents. Failing tests are printed, and counted all the same.
TESTS ?= tests
coverage: $(INSTALLED)
	$(BIN)/coverage erase
	-$(BIN)/coverage run -m pytest --numprocesses=2 --dist=worksteal $(TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# Most of these wait more than they compute, so they run two by two; machines that must answer each other in time run alone.
test-long: $(INSTALLED) programs
	$(MAKE) --jobs=2 --output-sync=target $(BESIDE)
	$(MAKE) long-properties $(ALONE)

$(ALONE) $(BESIDE): long-%: $(INSTALLED) programs
	$(LONG) $(LONG_$*)

# The quick tests that draw what they try draw more here.
long-properties: $(INSTALLED)
	PROCSNAKE_EXAMPLES=10000 $(BIN)/python -m pytest --numprocesses=2 tests/envs/battlesnake/test_properties.py
	PROCSNAKE_EXAMPLES=5000 $(BIN)/python -m pytest tests/serve/test_arena.py -k nothing_that_arrives

# What is tried beside libraries that the rest can't have. `.ci/run` takes one of them each day.
test-outside: $(OUTSIDE:%=outside-%)

outside-mxnet: $(MXNET)/.installed
	$(MXNET)/bin/python -m pytest -m "" $(NUMPY_1)

outside-tensorflow: $(TENSORFLOW)/.installed
	$(TENSORFLOW)/bin/python -m pytest -m long tests/agents/export/test_savedmodel.py tests/agents/export/test_serving.py

outside-clients: $(CLIENTS)/.installed
	SDL_VIDEODRIVER=dummy $(CLIENTS)/bin/python -m pytest -m long tests/clients

outside-sdk: $(SAGEMAKER)/.installed
	$(SAGEMAKER)/bin/python -m pytest -m long $(SDK)

outside-legacy: legacy-test

# Two at once: half of each is waiting for Ray 0.8.6 to start.
legacy-test: $(INSTALLED)
	$(LONG) --numprocesses=2 --dist=worksteal $(LEGACY)

# What another Python may break, in an environment of its own: make test-python PYTHON=python3.12
test-python:
	$(MAKE) VENV=.venv-$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])') language

language: $(INSTALLED)
	$(BIN)/python -m pytest --numprocesses=2 --dist=worksteal $(LANGUAGE)

# By hand, because they take a quarter of an hour: training on a Slurm of this machine's own, on a head with Ray's job
# server, and Ray's dashboard with Prometheus.
test-engines: $(INSTALLED) $(CLUSTER)/.installed
	@PATH="$$PATH:/usr/sbin"; for name in slurmctld slurmd munged prometheus; do command -v $$name >/dev/null || \
	  { echo "test-engines: $$name is missing. As root: apt-get install -y slurmctld slurmd slurm-client munge prometheus" >&2; exit 1; }; done
	$(CLUSTER)/bin/python -m pytest -m long $(ENGINES)

# By hand, because a server of MLflow starts three times: what MLflow and Weights & Biases get of a run.
test-trackers: $(SAGEMAKER)/.installed
	$(SAGEMAKER)/bin/python -m pytest -m long tests/train/runs/sessions/test_trackers.py

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Those whose code or data has changed; screenshots need Chromium and train a snake for three minutes.
pictures: $(INSTALLED)
	PYTHONPATH=. $(BIN)/python docs/pictures/make.py

notebooks: $(INSTALLED)
	$(BIN)/jupytext --quiet --update --to ipynb notebooks/*.py

# What the cells of changed notebooks print and draw, for those pages that show it.
outputs: $(INSTALLED)
	$(BIN)/python docs/hooks/notebook_outputs.py

# By hand: notebooks beside the packages of a host's image (tests/notebooks/hosts), each in miniature.
IMAGES := $(notdir $(basename $(wildcard tests/notebooks/hosts/*.txt)))
IMAGE ?= colab-3.12
NOTEBOOKS ?= $(notdir $(basename $(wildcard notebooks/*.py)))
hosted-notebooks: $(INSTALLED)
	$(BIN)/python -m tests.notebooks.run_on_host $(IMAGE) $(NOTEBOOKS)

# By hand, after each change of setup.py or constraints.txt, with uv on the path: exact versions and their hashes for each Python.
locks:
	@command -v uv >/dev/null || { echo "locks: uv is missing: pip install uv" >&2; exit 1; }
	for version in $(PYTHONS); do \
	  uv pip compile --quiet --no-annotate --generate-hashes --custom-compile-command "make locks" \
	    --python-version $$version --python-platform x86_64-manylinux_2_28 --constraint constraints.txt \
	    --override .ci/locks/without_torch.txt --extra dev --extra procgen setup.py --output-file .ci/locks/python-$$version.txt || exit 1; \
	done

# What the long tests need beside Python, by the names of Debian's packages.
programs:
	@missing=; \
	have() { for name; do command -v "$$name" >/dev/null && return; done; return 1; }; \
	have chromium chromium-browser google-chrome || missing="$$missing chromium"; \
	have initdb /usr/lib/postgresql/*/bin/initdb || missing="$$missing postgresql"; \
	have tini || missing="$$missing tini"; \
	have ip || missing="$$missing iproute2"; \
	have setpriv || missing="$$missing util-linux"; \
	have sshd /usr/sbin/sshd || missing="$$missing openssh-server"; \
	have ssh || missing="$$missing openssh-client"; \
	have Xvfb || missing="$$missing xvfb"; \
	have xdotool || missing="$$missing xdotool"; \
	have caddy || missing="$$missing caddy"; \
	[ -z "$$missing" ] || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; } || \
	  { echo "test-long: these are missing and could not be installed. As root: apt-get install -y$$missing" >&2; exit 1; }

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 10) <= sys.version_info[:2] <= (3, 13) else "procsnake needs Python 3.10 to 3.13; say which: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)

$(SERVE): setup.py constraints.txt .ci/install | $(VENV)/bin/python
	.ci/install $(VENV) serve
	touch $@

$(PLAY): setup.py constraints.txt .ci/install | $(VENV)/bin/python
	TORCH=$(TORCH) .ci/install $(VENV) play
	touch $(SERVE) $@

$(INSTALLED): setup.py constraints.txt .ci/install | $(VENV)/bin/python
	TORCH=$(TORCH) .ci/install $(VENV) test
	touch $(SERVE) $(PLAY) $@

# MXNet asks for NumPy 1, and so gets an environment of its own in front of the other one.
$(MXNET)/.installed: $(INSTALLED)
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info < (3, 13) else "MXNet and NumPy 1 need Python 3.10 to 3.12; say which: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(MXNET)
	$(MXNET)/bin/pip install --quiet mxnet==1.9.1 graphviz==0.8.4 numpy==1.26.4 requests
	{ pwd; $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; } > "$$($(MXNET)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/behind.pth"
	touch $@

# TensorFlow wants other versions than the rest, and so gets an environment of its own in front of the other one. The messages of
# TensorFlow Serving ask for `tensorflow`, which `tensorflow-cpu` isn't by name.
$(TENSORFLOW)/.installed: $(INSTALLED)
	$(PYTHON) -m venv $(TENSORFLOW)
	$(TENSORFLOW)/bin/pip install --quiet 'tensorflow-cpu==2.21.*' 'ml-dtypes<0.6' "numpy==$$($(BIN)/python -c 'import numpy; print(numpy.__version__)')"
	$(TENSORFLOW)/bin/pip install --quiet --no-deps 'tensorflow-serving-api==2.21.*'
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$$($(TENSORFLOW)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/behind.pth"
	touch $@

# Ray's job server needs much that nothing else does. Jobs find the tests' own worlds through the folder that comes first.
$(CLUSTER)/.installed: $(INSTALLED)
	$(PYTHON) -m venv $(CLUSTER)
	$(CLUSTER)/bin/pip install --quiet --constraint constraints.txt --upgrade setuptools 'ray[default]==2.60.*'
	$(CLUSTER)/bin/pip install --quiet --no-deps --no-build-isolation --editable .
	{ pwd; $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; } > "$$($(CLUSTER)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/behind.pth"
	touch $@

# AWS's SDK brings some 50 packages, MLflow among them, and older versions of four that the rest uses. Weights & Biases is here
# because its pins stand in the same file, which a test compares with what is installed. What is behind it needn't be installed twice.
$(SAGEMAKER)/.installed: $(INSTALLED) constraints-sagemaker.txt
	$(PYTHON) -m venv $(SAGEMAKER)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$$($(SAGEMAKER)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/behind.pth"
	$(SAGEMAKER)/bin/pip install --quiet --constraint constraints-sagemaker.txt 'sagemaker>=3.27,<4' 'wandb>=0.18'
	touch $@

# Libraries that people bring to the worlds, and what PettingZoo's own worlds need, with which they are compared.
$(CLIENTS)/.installed: $(INSTALLED)
	$(PYTHON) -m venv $(CLIENTS)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$$($(CLIENTS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/behind.pth"
	$(CLIENTS)/bin/pip install --quiet --constraint constraints.txt 'supersuit==3.11.*' 'stable-baselines3==2.9.*' 'sb3-contrib==2.9.*' \
	  'pygame==2.6.*' 'pymunk==7.*'
	touch $@

clean:
	rm -rf $(VENV) $(PYTHONS:%=.venv-%) $(TENSORFLOW) $(MXNET) $(CLUSTER) $(SAGEMAKER) $(CLIENTS) $(IMAGES:%=.venv-%) *.egg-info .pytest_cache .ruff_cache .hypothesis

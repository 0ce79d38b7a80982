# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 5. Scaling out: one machine, several, two kinds, spot
#
# The setting `scale` says how many machines an experiment uses, and of which type. Below,
# `--explain` shows what that means in the four cases of the original workshops, before it costs
# money. Then the same code trains on a simulated cluster here.
#
# **Time:** 15 minutes on two very busy cores, 5 of them training.

# %% [markdown]
# Run the first cell before all others. It installs procsnake if it is missing, as on Colab, Kaggle
# and SageMaker Studio. It keeps the installed NumPy, so the kernel needs no restart. Outside a
# clone, first set where procsnake comes from: `%env PROCSNAKE_SOURCE=git+https://…`. This notebook
# writes its files to the folder `workshop`.

# %%
import os
import subprocess
import sys
from importlib.metadata import distributions

if not any(distributions(name="procsnake")):
    places = ("..", ".", "./procsnake")
    clones = [at for at in places if os.path.exists(f"{at}/procsnake_packages.py")]
    source = os.environ.get("PROCSNAKE_SOURCE") or next(iter(clones), "procsnake")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", source]
    subprocess.run(pip, check=True)
from procsnake.notebook import set_up

set_up("serve,train,aws")

# %%
import logging
import os
from importlib.util import find_spec
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

import procsnake
from train.config import Experiment
from train.run import train
from train.sagemaker.hyperparameters import encode_overrides
from train.sagemaker.job import Job, requests
from train.sagemaker.jobs import job_name
from train.settings.scale import scale_overrides

FAST = os.environ.get("FAST") == "1"

# %% [markdown]
# ## Explained
#
# The four cases are: one machine plays and learns; several equal machines play, and the first also
# learns; a GPU learns while CPUs play; and spot capacity, which is cheaper but may be taken away at
# any moment. A GPU and CPUs that can't be groups of one job are two jobs. On our stack's notebook
# instance, a file names the stack and the instance types chosen for it.

# %%
settings = Path("../../../procsnake.env")  # beside the clone
chosen = (
    dict(line.split("=", 1) for line in settings.read_text().splitlines())
    if settings.exists()
    else {}
)
STACK = chosen.get("PROCSNAKE_STACK", "NAME")
CPU = chosen.get("PROCSNAKE_CPU_INSTANCE", "ml.c5.4xlarge")
GPU = chosen.get("PROCSNAKE_GPU_INSTANCE", "ml.g5.2xlarge")

# %%
SCALES = {
    "single": f"battlesnake-ppo --instances {CPU}",
    "homogeneous": f"battlesnake-apex --instances 3*{CPU}",
    "heterogeneous": f"battlesnake-apex --instances {GPU}+2*{CPU}",
    "two jobs": f"battlesnake-apex --instances {GPU}+2*{CPU} --two-jobs",
    "spot": f"battlesnake-ppo --instances {CPU} --spot",
}
for name, arguments in SCALES.items():
    command = f"launch sagemaker {arguments} --explain"
    print(f"\n{name}: procsnake {command}")
    assert procsnake.main(command.split()) == 0
print(f"\nto start one: procsnake launch sagemaker {SCALES['single']} --stack {STACK}")

# %% [markdown]
# With an account, replace `--explain` with `--stack NAME` to start the job, follow it, and download
# the run's folder. See the page on SageMaker; for your own machines, see the page on several
# machines. `--print-request` shows the request without sending it:

# %%
ROLE = "arn:aws:iam::123456789012:role/mine"
REGISTRY = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
IMAGE = f"{REGISTRY}/procsnake-training:latest"
places = f"--region eu-west-1 --role {ROLE} --image {IMAGE} --bucket my-bucket"
command = f"launch sagemaker {SCALES['homogeneous']} {places} --print-request"
assert procsnake.main(command.split()) == 0

# %% [markdown]
# ## The same job by AWS's SDK
#
# For scripts that use version 3 of the SageMaker Python SDK, procsnake makes a `ModelTrainer` for
# the same request; `trainer.train()` would create the job. To install the SDK, run `pip install
# --constraint constraints-sagemaker.txt -e '.[sagemaker]'` in a clone.

# %%
overrides = scale_overrides("3*ml.c5.4xlarge")
job = Job(
    name=job_name("battlesnake-apex"),
    role=ROLE,
    image=IMAGE,
    bucket="my-bucket",
    prefix="procsnake",
    region="eu-west-1",
    scale=Experiment.load("battlesnake-apex", overrides).scale,
    hyperparameters=encode_overrides("battlesnake-apex", overrides),
)
if find_spec("sagemaker"):
    from train.sagemaker.sdk import trainers

    (trainer,) = trainers(job)
    print(trainer.compute, trainer.hyperparameters, sep="\n")
else:
    resources = requests(job)[0]["ResourceConfig"]
    print(f"The SDK isn't installed. It would be given {resources}")

# %% [markdown]
# ## A cluster, simulated
#
# Ray can simulate a cluster: three nodes in separate processes, one that learns and two that play.
# They have the same Ray resources that the launcher gives to real machines, so APEX places its
# learner, env runners and replay shards on them as it would there.

# %%
# What Ray advises on this machine's memory matters only to real clusters.
logging.getLogger("ray").setLevel(logging.ERROR)
cluster = Cluster()
cluster.add_node(
    num_cpus=2,
    resources={"group_learner": 1000},
    include_dashboard=False,
    dashboard_port=None,
)
for _ in range(2):
    cluster.add_node(num_cpus=1, resources={"group_rollout": 1000})
os.environ["RAY_ADDRESS"] = cluster.address

changes = [
    "num_env_runners=2",
    "env.options.num_games=16",
    "apex.learning_starts=1000",
    "apex.train_batch_size=128",
]
changes += ["budget.total_agent_steps=5000" if FAST else "budget.max_minutes=3"]
experiment = Experiment.load("battlesnake-apex", changes)
run = train(experiment, cluster=cluster.address)
print(
    f"{run.metrics['agent_steps']:,.0f} decisions,"
    f" {run.metrics['agent_steps_per_second']:,.0f} per second at the end,"
    f" {run.metrics['restored_env_runners']:.0f} env runners started anew"
)

# %% [markdown]
# ## Spot: taken away, and going on
#
# When spot capacity is taken away, the run gets SIGTERM, or no warning at all. It saves regularly
# and on SIGTERM, and a new machine continues from the newest checkpoint. Here the first session is
# stopped after one iteration, as by SIGTERM, and then resumed.

# %%
small = (
    ["budget.total_agent_steps=30000", "env.options.num_games=32"]
    if FAST
    else ["budget.max_minutes=2"]
)
stopped = train(
    Experiment.load("battlesnake-ppo", small),
    on_iteration=lambda row: row["iteration"] >= 1,
    cluster=cluster.address,
)
print(
    f"finished: {stopped.finished}, at {stopped.metrics['agent_steps']:,.0f} decisions"
)
resumed = train(resume=stopped.path, cluster=cluster.address)
print(
    f"finished: {resumed.finished}, at {resumed.metrics['agent_steps']:,.0f} decisions,"
    f" policy {resumed.bundle}"
)

# %%
ray.shutdown()
cluster.shutdown()

# %% [markdown]
# ## Next
#
# * For your own machines, see the page about several machines. Slurm, KubeRay, Ray jobs and EC2
#   have a page each.
# * For SageMaker, see its page: `procsnake launch sagemaker … --stack NAME` starts a job.

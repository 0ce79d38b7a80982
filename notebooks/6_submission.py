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
# # 6. An entry to AIcrowd's Procgen competition
#
# **The competition closed in 2020, and nothing is graded any more.** An entry serves to reproduce a
# run on the original stack: Ray 0.8.6 on Python 3.7. `procsnake export aicrowd` turns an experiment
# or a run into a repository for it, `check` checks it against every rule, and `submit` tags and
# pushes it. The page on AIcrowd says what is translated and how.
#
# **Time:** 19 minutes on two very busy cores, 10 of them the budget of the training.

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

set_up("serve,train,procgen-numpy2")

# %%
import os
import shlex
import subprocess
from pathlib import Path

from IPython.display import Image, Markdown, display

import procsnake
from agents.measure.evaluation.procgen import POLICY, evaluate, table
from agents.measure.evaluation.procgen_episodes import animation
from train.config import Experiment
from train.run import train

FAST = os.environ.get("FAST") == "1"


def run_command(command: str) -> None:
    """Run `procsnake …` in this process."""
    print("procsnake", command)
    if procsnake.main(shlex.split(command)):
        raise SystemExit("The command failed; it says above why.")


# %% [markdown]
# ## Train
#
# An entry trains from scratch, as the rules demanded, so you can export an experiment without a
# run. Train here to choose settings, and to roll out the policy below.

# %%
if FAST:
    changes = [
        "budget.total_agent_steps=1024",
        "env.options.num_games=8",
        "ppo.num_steps=64",
        "ppo.num_epochs=1",
    ]
else:
    changes = ["budget.max_minutes=10"]
experiment = Experiment.load("procgen-ppo", ["env.name=procgen/starpilot", *changes])
run = train(Experiment.from_dict({**experiment.to_dict(), "evaluation": None}))

# %% [markdown]
# ## Export and check
#
# The entry is a folder. Its experiment, shown below, says in the competition's own keys what the
# run's experiment said.

# %%
export = f"export aicrowd {run.path} --track generalization"
run_command(f"{export} --out entry --author Ada")

# %%
sorted(
    str(path.relative_to("entry"))
    for path in Path("entry").rglob("*")
    if path.is_file()
)

# %%
run_command("export check entry")

# %%
display(
    Markdown(
        f"```yaml\n{next(Path('entry/experiments').glob('*.yaml')).read_text()}\n```"
    )
)

# %% [markdown]
# ## Submit
#
# `--dry-run` says what the command would do. Without it, the command commits the entry, tags it
# `submission-…` and pushes it to `gitlab.aicrowd.com`. Here the remote is an empty repository on
# this machine.

# %%
subprocess.run(["git", "init", "--quiet", "--bare", "remote.git"], check=True)
remote = shlex.quote(str(Path("remote.git").resolve()))
run_command(f"export submit entry --message 'first try' --dry-run --remote {remote}")

# %% [markdown]
# ## Roll out
#
# Here the policy plays the test levels of its game, and the film shows its best episode. On the
# competition's stack, a *local* package (`--with-weights`) plays exactly the same actions:
# `CHECKPOINT=checkpoint/checkpoint_1/checkpoint-1 ./run.sh --rollout`, which needs Python 3.7.

# %%
played = evaluate(
    [str(run.bundle)], levels="test", episodes=4 if FAST else 100, seed=1, say=print
)
print(table([one.score for one in played]))
policy = next(one for one in played if one.score.player == POLICY)
best = max(policy.episodes, key=lambda episode: episode.episode_return)
film = animation(policy.world, policy.options, best)
display(Image(data=film, format="gif", width=256))

# %%
run_command(f"{export} --out local --with-weights")

# %% [markdown]
# ## Next
#
# * The folder `local` has what the rollout needs; its `README.md` says how to run it with Python
#   3.7.
# * The page on AIcrowd lists what else an entry can have, such as another network or augmented
#   pictures.

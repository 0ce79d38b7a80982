"""Runs on the stack of 2020 and says what becomes of an experiment after each of many edits.

    python legacy_crashes.py ENTRY EDITS.json RESULTS.json

EDITS.json maps names to the whole texts of edited experiments. Each is trained by the entry's own
train.py in a process of its own, which is forked from one that has loaded Ray and TensorFlow. All
are drivers of one cluster, and run their actors themselves (`local_mode`), because starting Ray
takes longer than all else. RESULTS.json maps each name to "" if training came to its end, else to
the last line of what it failed with.
"""

import glob
import json
import os
import re
import runpy
import shutil
import sys
import tempfile
import time
import traceback

SECONDS = int(os.environ.get("PROCSNAKE_LEGACY_SECONDS", "240"))


def load():
    """All that takes long to import, none of which starts a thread."""
    import ray
    import torch
    from ray.rllib.agents.registry import ALGORITHMS
    from ray.rllib.utils.framework import try_import_tf

    try_import_tf()
    for name in ("APEX", "DQN", "PPO"):
        ALGORITHMS[name]()
    torch.set_num_threads(1)
    address = start_cluster()
    start = ray.init
    ray.init = lambda *_, **__: start(address=address, local_mode=True)


def start_cluster():
    """Start a cluster of this machine alone, and return its address."""
    from ray.node import Node
    from ray.parameter import RayParams

    # The process stays no driver itself, because a driver has threads and can't be forked.
    sizes = {"memory": 1 << 30, "object_store_memory": 1 << 28, "redis_max_memory": 1 << 27}
    node = Node(
        RayParams(num_cpus=8, num_gpus=0, include_webui=False, include_log_monitor=False, **sizes),
        head=True,
        shutdown_at_exit=True,
        spawn_reaper=False,
    )
    return node.redis_address


def train(entry, text, home):
    """Train in this process, and return what it failed with."""
    os.environ["HOME"] = home
    os.chdir(entry)
    sys.path.insert(0, entry)
    path = os.path.join(home, "edited.yaml")
    with open(path, "w") as file:
        file.write(text)
    sys.argv = ["train.py", "-f", path]
    # Ray chose its folder for results when it was imported.
    from ray.tune import experiment, result

    results = os.path.join(home, "ray_results")
    for module in (result, experiment):
        module.DEFAULT_RESULTS_DIR = results
    try:
        runpy.run_path("train.py", run_name="__main__")
    except BaseException as error:
        files = glob.glob(os.path.join(results, "*", "*", "error.txt"))
        if files:
            with open(files[0]) as file:
                return last_error(file.read())
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return ""


def last_error(text):
    """The line of a traceback that names the error, without the colours of a terminal."""
    lines = re.sub(r"\x1b\[\d+m", "", text).splitlines()
    named = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return (named or lines)[-1]


def tried(entry, text):
    """What an edited experiment fails with, found out in a process of its own."""
    home = tempfile.mkdtemp()
    answer = os.path.join(home, "answer")
    child = os.fork()
    if not child:
        log = os.open(os.path.join(home, "log"), os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        failure = train(entry, text, home)
        with open(answer, "w") as file:
            file.write(failure)
        os._exit(0)
    deadline = time.time() + SECONDS
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.time() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            return f"it is still waiting after {SECONDS} s"
        time.sleep(0.05)
    if not os.path.exists(answer):
        return "the process died"
    with open(answer) as file:
        failure = file.read()
    if os.environ.get("KEEP"):
        print(home)
    else:
        shutil.rmtree(home, ignore_errors=True)
    return failure


def main(entry, edits, out):
    load()
    with open(edits) as file:
        texts = json.load(file)
    results = {}
    for name, text in texts.items():
        started = time.time()
        results[name] = tried(os.path.abspath(entry), text)
        print(f"{name:30} {time.time() - started:5.1f} s  {results[name][:150]}")
        sys.stdout.flush()
    with open(out, "w") as file:
        json.dump(results, file, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])

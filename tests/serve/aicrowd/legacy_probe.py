"""Runs inside an exported package on its own Python 3.7: what the package's policy answers, plays
and has learned.

    python legacy_probe.py answer EXPERIMENT.yaml JOB.npz OUT.npz      logits of frames, greedy
    episodes
    python legacy_probe.py weights CHECKPOINT OUT.npz                  the weights in a checkpoint
    python legacy_probe.py epsilon EXPERIMENT.yaml STEPS               how often it plays at random
    then

JOB.npz holds `frames`, and texts `games`, `seed`, `episodes` and `checkpoint` (none: the weights
that the model starts from). With columns `batch_…` it also tells PPO's loss on that batch, and what
a game pays for its actions."""

import os
import pickle
import sys

import numpy as np


def loaded():
    """As train.py and rollout.py begin."""
    sys.path.insert(0, os.getcwd())
    from algorithms import CUSTOM_ALGORITHMS
    from utils.loader import load_algorithms, load_envs, load_models

    load_envs(os.getcwd())
    load_models(os.getcwd())
    load_algorithms(CUSTOM_ALGORITHMS)


def make_policy(body, env):
    """The policy as Ray's trainer makes it, without a cluster."""
    from ray.rllib.agents.registry import get_agent_class
    from ray.tune.registry import TRAINABLE_CLASS, _global_registry

    custom = _global_registry.contains(TRAINABLE_CLASS, body["run"])
    trainer = (
        _global_registry.get(TRAINABLE_CLASS, body["run"])
        if custom
        else get_agent_class(body["run"])
    )
    own = {
        key: value
        for key, value in body["config"].items()
        if key not in ("use_pytorch", "evaluation_config")
    }
    config = trainer.merge_trainer_configs(trainer._default_config, dict(own, num_workers=2))
    config.update(
        framework="torch" if body["config"]["use_pytorch"] else "tf", num_gpus=0, worker_index=0
    )
    if body["run"] == "ProcsnakePPO":
        from algorithms.procsnake_ppo import PolicyTF, PolicyTorch

        policy = PolicyTorch if body["config"]["use_pytorch"] else PolicyTF
    else:
        from algorithms.procsnake_q import policy_class

        policy = policy_class(config)
    from ray.rllib.utils.framework import try_import_tf

    # As a worker does it: the name is part of the variables' names.
    with try_import_tf().variable_scope("default_policy"):
        return policy(env.observation_space, env.action_space, config)


def make_env(body, **changes):
    """The world of rollouts."""
    from ray.tune.registry import ENV_CREATOR, _global_registry

    config = dict(
        body["config"]["env_config"], **body["config"]["evaluation_config"].get("env_config", {})
    )
    return _global_registry.get(ENV_CREATOR, body["env"])(dict(config, **changes))


def restore(policy, path):
    with open(path, "rb") as file:
        worker = pickle.loads(pickle.load(file)["worker"])
    policy.set_state(worker["state"]["default_policy"])


def logits(policy, frames):
    return policy.compute_actions(frames, explore=False)[2]["action_dist_inputs"]


def play(policy, env, episodes):
    """Actions of greedy episodes one after the other; (return, length) of each."""
    actions = []
    results = []
    for _ in range(episodes):
        observation = env.reset()
        done = False
        info = {}
        while not done:
            action = int(policy.compute_actions(observation[None], explore=False)[0][0])
            actions.append(action)
            observation, _, done, info = env.step(action)
        results.append((info["episode_return"], info["episode_length"]))
    return actions, results


def losses(policy, frames, columns):
    """Parts of PPO's loss on a batch."""
    from ray.rllib.policy.sample_batch import SampleBatch

    count = len(columns["actions"])
    others = {
        "rewards": np.zeros(count, np.float32),
        "dones": np.zeros(count, bool),
        "prev_actions": columns["actions"],
    }
    batch = SampleBatch(
        dict(
            columns,
            obs=frames[:count],
            new_obs=frames[:count],
            prev_rewards=others["rewards"],
            **others,
        )
    )
    stats = policy.compute_gradients(batch)[1]["learner_stats"]
    return {
        name: np.float64(stats[name])
        for name in ("total_loss", "policy_loss", "vf_loss", "entropy", "kl")
    }


def pay(env, actions):
    """What each action is paid, shaped and normalised."""
    env.reset()
    rewards = []
    for action in actions:
        _, reward, done, _ = env.step(int(action))
        rewards.append(reward)
        if done:
            env.reset()
    return rewards


def answer(experiment, job, out):
    import yaml

    loaded()
    with open(experiment) as file:
        (body,) = yaml.safe_load(file).values()
    job = np.load(job)
    policy = make_policy(body, make_env(body))
    if str(job["checkpoint"]):
        restore(policy, str(job["checkpoint"]))
    answers = {"logits": logits(policy, job["frames"])}
    for game in filter(None, str(job["games"]).split(",")):
        env = make_env(body, env_name=game, num_levels=0, rand_seed=int(job["seed"]))
        actions, results = play(policy, env, int(job["episodes"]))
        answers[game + "_actions"] = actions
        answers[game + "_results"] = results
    columns = {name[len("batch_") :]: job[name] for name in job.files if name.startswith("batch_")}
    if columns:
        answers.update(losses(policy, job["frames"], columns))
        game = make_env(
            body,
            env_name="fruitbot",
            num_levels=0,
            rand_seed=int(job["seed"]),
            shape_rewards=True,
            norm_reward=0.99,
        )
        answers["paid"] = pay(game, columns["actions"])
    np.savez(out, **answers)


def weights(checkpoint, out):
    with open(checkpoint, "rb") as file:
        worker = pickle.loads(pickle.load(file)["worker"])
    state = worker["state"]["default_policy"]
    np.savez(
        out,
        **{
            name.replace("/", "|"): value
            for name, value in state.items()
            if isinstance(value, np.ndarray)
        },
    )


def epsilon(experiment, steps):
    import yaml

    loaded()
    with open(experiment) as file:
        (body,) = yaml.safe_load(file).values()
    print(
        "epsilon", make_policy(body, make_env(body)).exploration.epsilon_schedule._value(int(steps))
    )


if __name__ == "__main__":
    {"answer": answer, "weights": weights, "epsilon": epsilon}[sys.argv[1]](*sys.argv[2:])

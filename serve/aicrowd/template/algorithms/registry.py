"""By the name under `run:`, a function that imports the trainer."""


def _procsnake_ppo():
    from algorithms.procsnake_ppo import ProcsnakePPO

    return ProcsnakePPO


def _procsnake_dqn():
    from algorithms.procsnake_q import ProcsnakeDQN

    return ProcsnakeDQN


def _procsnake_apex():
    from algorithms.procsnake_q import ProcsnakeAPEX

    return ProcsnakeAPEX


CUSTOM_ALGORITHMS = {
    "ProcsnakePPO": _procsnake_ppo,
    "ProcsnakeDQN": _procsnake_dqn,
    "ProcsnakeAPEX": _procsnake_apex,
}

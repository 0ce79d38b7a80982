"""From the name under `run:` to a function that imports the trainer."""


def _procsnake_ppo():
    from algorithms.procsnake_ppo import ProcsnakePPO

    return ProcsnakePPO


CUSTOM_ALGORITHMS = {"ProcsnakePPO": _procsnake_ppo}

def _import_nothing():
    from ray.rllib.agents.pg import PGTrainer

    return PGTrainer


CUSTOM_ALGORITHMS = {"custom/CustomRandomAgent": _import_nothing}

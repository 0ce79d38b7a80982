"""Makes of an experiment the `BatchEnv` that it trains on: opponents, curricula, mixtures,
augmentation, novelty.
"""

"""Makes the `BatchEnv` that an experiment trains on: opponents, curricula, mixtures, augmentation,
novelty.
"""

"""Training: algorithms on RLlib over any `envs.api.BatchEnv`, and the life of a run on disk."""

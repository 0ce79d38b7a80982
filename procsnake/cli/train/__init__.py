"""The commands for training."""

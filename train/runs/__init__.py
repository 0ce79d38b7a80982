"""A training run on disk: its folder, its sessions, its checkpoints, its curves, its report."""

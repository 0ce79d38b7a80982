"""A training run on several machines: its size, the machines' roles, and its start and end."""

"""A training run on several machines: how large it is, who plays and who learns where, and who starts and ends it."""

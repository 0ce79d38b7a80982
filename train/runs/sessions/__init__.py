"""A session of training: its initial weights, evaluations, display and logs."""

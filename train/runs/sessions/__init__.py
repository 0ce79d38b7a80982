"""A stretch of training: its first weights, its evaluations, what it shows and logs."""

"""What the operator of a server sees of it: its log, its figures, and whether it is about to end."""

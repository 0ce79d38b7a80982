"""What the grader's train.py reads; it puts its own in the place of this folder."""

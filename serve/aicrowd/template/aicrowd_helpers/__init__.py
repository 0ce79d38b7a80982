"""What the grader's train.py reads. The grader replaces this folder by its own."""

"""The report of a run: one page with its charts, its film and its generations."""

"""The commands for playing and looking."""

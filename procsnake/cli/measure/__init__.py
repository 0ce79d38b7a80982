"""The commands for measuring."""

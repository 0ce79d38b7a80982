"""The commands for competing."""

"""The commands for many machines."""

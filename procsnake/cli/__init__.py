"""The commands by subject: each file parses, calls and prints."""

"""A run in an object store: its files, their copy there, and the lock that reserves it."""

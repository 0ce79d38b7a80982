"""A server's log, metrics and draining state, for its operator."""

"""How requests arrive: limits on connections, dispatch to threads, and limits on size and rate."""

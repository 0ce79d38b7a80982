"""The curves of runs: reading, statistical comparison, and plotting."""

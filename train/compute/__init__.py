"""How learning uses the machine: threads, memory, GPUs, and the optimiser Muon."""

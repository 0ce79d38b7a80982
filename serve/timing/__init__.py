"""An answer leaves in time: deadlines, shared cores, stalls, and how far away the engine is."""

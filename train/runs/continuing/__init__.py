"""Continues a run: resumed, with other processes, for longer, or by a later start of its job."""

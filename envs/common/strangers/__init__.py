"""Untrusted files: they are read within bounds, and executed only if this user wrote them."""

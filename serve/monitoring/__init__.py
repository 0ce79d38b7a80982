"""What a server's operator sees of it: its log, its figures, and whether it is about to end."""

"""Stand-in of the starter kit's."""

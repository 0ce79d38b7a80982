"""Pages in a browser: watching games, reviewing recorded ones, and playing by hand."""

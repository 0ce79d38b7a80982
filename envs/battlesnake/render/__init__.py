"""Pictures of games: terminal, pixels, SVG, animations, a window. Painters are imported from their own files."""

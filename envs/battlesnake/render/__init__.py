"""Pictures of games: in the terminal, as pixels, as SVG, as animations, in a window. Import each
painter from its own file.
"""

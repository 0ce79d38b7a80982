"""Stand-in of the starter kit's table, of the games that are tried."""

EASY_GAME_RANGES = {"coinrun": [0, 5, 10], "starpilot": [0, 2.5, 64]}

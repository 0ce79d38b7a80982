"""The [least, blind, highest] return of each game in easy mode. A score is (return - blind) /
(highest - blind)."""

EASY_GAME_RANGES = {
    "bigfish": [0, 1, 40],
    "bossfight": [0, 0.5, 13],
    "caveflyer": [0, 3.5, 12],
    "chaser": [0, 0.5, 13],
    "climber": [0, 2, 12.6],
    "coinrun": [0, 5, 10],
    "dodgeball": [0, 1.5, 19],
    "fruitbot": [-12, -1.5, 32.4],
    "heist": [0, 3.5, 10],
    "jumper": [0, 1, 10],
    "leaper": [0, 1.5, 10],
    "maze": [0, 5, 10],
    "miner": [0, 1.5, 13],
    "ninja": [0, 3.5, 10],
    "plunder": [0, 4.5, 30],
    "starpilot": [0, 2.5, 64],
    "caterpillar": [0, 8.25, 24],
    "gemjourney": [0, 1.1, 16],
    "hovercraft": [0, 0.2, 18],
    "safezone": [0, 0.2, 10],
}

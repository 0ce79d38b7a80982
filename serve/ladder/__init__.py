"""Arena (arena.battlesnake.com), where ranked games are played: enter a snake, follow it, and fetch
its games.

Everything here was written from facts about Arena's public API and tested against a stand-in for it
(`tests/serve/ladder/`), not live. Nothing is imported here, so that the command line stays quick.
"""

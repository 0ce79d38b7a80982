"""Arena (arena.battlesnake.com), where ranked games are played: enter a snake, follow it, and fetch
its games.

Everything here was written from facts about Arena's public API and tried against a stand-in of it
(`tests/serve/ladder/`). None of it was tried live. Nothing is imported here, so that the command
line stays quick."""

"""Tournaments among agents and snakes behind URLs, and the ratings that come of them."""

"""Tournaments among agents and snakes behind URLs, and the ratings that follow from them."""

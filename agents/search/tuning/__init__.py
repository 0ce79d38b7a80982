"""Finds better values for a search's options, by games (SPSA) or by regression on recorded results
(Texel's method).
"""

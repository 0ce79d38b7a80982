"""Observations need no preprocessing: the networks read raw pictures."""

CUSTOM_PREPROCESSORS = {}

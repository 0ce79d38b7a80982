"""The keys that an experiment may have, and what their docstrings say of them, for `procsnake train
EXPERIMENT --help-keys` and the settings page.
"""

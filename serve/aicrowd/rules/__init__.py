"""The rules that an entry is checked against, by what they look at."""

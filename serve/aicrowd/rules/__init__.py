"""The rules for an entry, by what they check."""

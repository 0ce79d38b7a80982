"""What a position is worth where a search stops: territory, lengths, hunger, and a learned
correction.
"""

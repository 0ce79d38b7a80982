"""How requests arrive: what connections may do, how requests reach the threads, how large and how
many they may be.
"""

"""A training run on several machines: its size, which machine plays and which learns, and how it
starts and ends.
"""

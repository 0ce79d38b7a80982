"""What is common to all algorithms on RLlib: algorithm, modules, connector, failures, and the start
and stop of Ray.

docs/rllib.md lists the hooks of RLlib that are used.
"""

"""What all algorithms on RLlib share: algorithm, modules, connector, failures, and the start and
stop of Ray.

docs/lab/rllib-hooks.md lists the hooks of RLlib that are used.
"""

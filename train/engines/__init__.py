"""Writes what other engines than SageMaker need to train an experiment: KubeRay, Slurm, and Ray's
own launcher on EC2.
"""

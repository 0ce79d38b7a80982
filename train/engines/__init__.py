"""Writes the files with which KubeRay, Slurm and Ray's launcher on EC2 train an experiment."""

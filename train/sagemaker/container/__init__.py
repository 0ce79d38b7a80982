"""The programs that a job runs in its containers on SageMaker."""

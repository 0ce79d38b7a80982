"""What a job runs inside its container on SageMaker."""

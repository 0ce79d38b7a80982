"""Training on Amazon SageMaker: requests, the life of a job, and what runs in its container."""

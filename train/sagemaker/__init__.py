"""Training on Amazon SageMaker: the requests, the life of a job, and what runs in its container."""

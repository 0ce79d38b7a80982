"""What a job on SageMaker costs: estimated before it is paid for, and billed afterwards."""

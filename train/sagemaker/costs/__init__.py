"""The cost of a job on SageMaker: estimated before it is paid for, and billed afterwards."""

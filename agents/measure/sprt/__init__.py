"""Sequential tests: which of two players is stronger, in no more games than the answer takes."""

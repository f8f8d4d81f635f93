"""What an interpreter and its machine have, and where on it a worker runs. Needs nothing else of `bench`."""

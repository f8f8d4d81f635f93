"""Facts about an interpreter and its machine, and the placement of workers on it. Needs nothing else of `bench`."""

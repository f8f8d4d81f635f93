"""One file a dataset."""

"""One file per dataset."""

"""One file per stack."""

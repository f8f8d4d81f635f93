"""One file per device."""

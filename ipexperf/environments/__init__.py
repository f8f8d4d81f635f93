"""Environments made again from a lock, in a cache folder."""

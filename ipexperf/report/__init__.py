"""The report: records turned into text for people and for CI. It measures nothing and decides nothing."""

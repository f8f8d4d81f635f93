"""The report: text for people and CI from records. It measures nothing and decides nothing."""

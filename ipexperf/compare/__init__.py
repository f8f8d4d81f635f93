"""The comparison of arms: they run in rounds, in which their workers take turns or follow one another."""

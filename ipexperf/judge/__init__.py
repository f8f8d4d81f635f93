"""The judge: pure functions on plain records. It never measures, and touches no file but the baselines."""

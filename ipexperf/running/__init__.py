"""The three parts of a run: who measures, who judges, and who tells."""

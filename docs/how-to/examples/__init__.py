"""The example files of the how-to pages. Each is loaded by path with --perf-load, never imported from here."""

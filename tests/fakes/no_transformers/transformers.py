"""First on PYTHONPATH, this hides `transformers`, which IPEX imports if it is there: two of its seven CPU seconds."""

raise ModuleNotFoundError("No module named 'transformers'", name="transformers")

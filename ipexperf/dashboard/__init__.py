"""The dashboard: a history as static pages, which need neither a server nor a network."""

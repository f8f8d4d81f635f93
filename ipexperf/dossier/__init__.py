"""The dossier of a slowdown: one page for a colleague without this tool, with all that its two arms tell."""

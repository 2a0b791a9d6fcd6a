"""The pages: one explorable a module, and what several of them share."""

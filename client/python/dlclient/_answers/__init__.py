"""What to write here instead of what a program says that was written for torch."""

"""Where a run stands: epochs, the place within one, and the state that is saved of it."""

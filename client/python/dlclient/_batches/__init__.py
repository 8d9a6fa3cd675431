"""What a loop gets: batches, the form that the loader was asked for, and other frameworks' arrays."""

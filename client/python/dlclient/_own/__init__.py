"""Functions of the trainer's own in the pipeline, in processes that the loader starts."""

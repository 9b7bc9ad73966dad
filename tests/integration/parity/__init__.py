"""The decision log is the same in every way to run the pipeline, crashes included."""

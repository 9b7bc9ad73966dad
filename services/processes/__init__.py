"""The processes beside the stages: workers, readers of the stream, and their command line."""

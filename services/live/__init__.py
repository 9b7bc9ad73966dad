"""The live page: runs as they go, in a browser."""

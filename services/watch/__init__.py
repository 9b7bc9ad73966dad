"""The messages of a topic as they come, at the terminal."""

"""The stages, and what stands beside them: other processes, the follower and the shadows of a live cluster."""

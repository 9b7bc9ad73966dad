"""The stages, the processes beside them, and the follower and the shadows of a live cluster."""

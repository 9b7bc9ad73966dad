"""The stages, the processes that are not stages, and the follower and the shadows of a live cluster."""

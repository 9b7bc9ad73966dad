"""Followers: sources that cannot be pulled, since what they tell is happening now."""

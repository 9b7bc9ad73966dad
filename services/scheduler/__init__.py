"""Which waiting job may start now: one pass per scheduling point."""

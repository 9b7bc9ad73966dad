"""Servers and workers as local processes, supervised: `shadowtime stack` and `shadowtime doctor`."""

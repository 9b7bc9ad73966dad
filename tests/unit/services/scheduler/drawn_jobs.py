"""Strategies for running and waiting jobs on a small machine."""

from hypothesis import strategies as st

RUNNING = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 12)), max_size=5)


WAITING = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 9)), max_size=6)

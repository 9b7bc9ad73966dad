"""How much an object remembers, all that it holds counted."""

import pickle


def memory_size(held: object) -> int:
    """Return the bytes of an object and of whatever it holds, written out; views of the same thing count once."""
    return len(pickle.dumps(held))

"""Random hidden Markov models, with what they are to be filtered with."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from shadowtime.services.runtime_distribution.hmm.filter import Counts, Model
from shadowtime.shared.kernels.arrays import Floats


class Case(NamedTuple):
    model: Model
    prior: Floats
    counts: Counts


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Return a random model with what it is to be filtered with; some probabilities are 0."""
    states, bins, slices = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    transition = chance.dirichlet(np.ones(states), states)
    if draw(st.booleans()):
        transition = np.where(transition < 0.1, 0.0, transition)
        transition /= transition.sum(axis=1, keepdims=True)
    model = Model(chance.dirichlet(np.ones(bins), states), transition)
    return Case(model, chance.dirichlet(np.ones(states)), chance.integers(0, 4, (slices, bins)).astype(np.uint16))

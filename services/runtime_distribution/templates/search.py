"""The search for a template set: a genetic algorithm, in which the fittest sets have the most children."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import PCG64, Generator

from shadowtime.services.runtime_distribution.templates.template import (
    CHARACTERISTICS,
    MAX_TEMPLATES,
    PREDICTIONS,
    Template,
)
from shadowtime.shared.kernels import Floats, Integers

# Template sets as bits, and their recombination.
#
# An individual has shape (templates, bits): 1 to 10 templates, each encoded in the bits that `Genes` decodes.

Individual = npt.NDArray[np.uint8]

RANGES: Final = {
    "processors": [1 << power for power in range(10)],
    "running": [1 << power for power in range(6, 17)],
    "history": [1 << power for power in range(1, 17)],
}
"""Values of the optional settings of a template. One bit says whether a setting is used, four bits select a value."""

MIN_FITNESS, MAX_FITNESS = 1.0, 4.0
MUTATION = 0.01


class Genes:
    """The encoding of a template in bits, for jobs with some known characteristics.

    Two bits select the prediction, and one says whether run times are relative. One bit for each characteristic says
    whether the jobs of a category share it. Then there are five bits for each of `RANGES`. The number in the last four
    of them is taken modulo the number of values.

    `running` states whether running jobs are predicted, too. If not, the setting `running` of a template has no effect.

    >>> genes = Genes(["user", "request"])
    >>> genes.bits
    20
    >>> str(genes.template(np.array([0, 1, 1, 1, 0, *(1, 0, 0, 1, 1), *(0, 0, 0, 0, 0), *(1, 0, 0, 0, 1)])))
    'linear(key=user,relative=yes,processors=8,history=4)'
    """

    def __init__(self, characteristics: Sequence[str], *, running: bool = False) -> None:
        self.characteristics = tuple(
            characteristic for characteristic in CHARACTERISTICS if characteristic in characteristics
        )
        self.running = running
        self.bits = 3 + len(self.characteristics) + 5 * len(RANGES)

    def template(self, bits: Individual) -> Template:
        """Return the template that the bits encode. Any bits are valid."""
        prediction, (relative, *flags) = bits[:2], bits[2 : 3 + len(self.characteristics)]
        chosen = [characteristic for characteristic, flag in zip(self.characteristics, flags, strict=True) if flag]
        parts: dict[str, int] = {}
        for (name, values), (there, *which) in zip(
            RANGES.items(), bits[3 + len(self.characteristics) :].reshape(-1, 5), strict=True
        ):
            if there:
                parts[name] = values[_number(which) % len(values)]

        return Template.model_validate(
            {"prediction": PREDICTIONS[_number(prediction)], "key": "+".join(chosen), "relative": relative, **parts}
        )

    def templates(self, individual: Individual) -> tuple[Template, ...]:
        """Return the templates of an individual, each once.

        If no running job is predicted, they are without their setting `running`, so that the resulting set contains
        only settings that were evaluated.
        """
        dropped = {} if self.running else {"running": None}
        return tuple(dict.fromkeys(self.template(bits).model_copy(update=dropped) for bits in individual))

    def random(self, chance: Generator) -> Individual:
        """Return an individual with a random number of templates of random bits."""
        count = int(chance.integers(1, MAX_TEMPLATES + 1))
        return chance.integers(0, 2, (count, self.bits), np.uint8)


def _number(bits: Sequence[int] | Individual) -> int:
    return int("".join(map(str, bits)), 2)


def fitness(errors: Sequence[float]) -> Floats:
    """Return the fitness of individuals with these errors: from `MAX_FITNESS` for the least to `MIN_FITNESS`.

    If all errors are equal, all individuals have `MAX_FITNESS`.

    >>> fitness([10, 20, 40]).tolist(), fitness([7, 7]).tolist()
    ([4.0, 3.0, 1.0], [4.0, 4.0])
    """
    error = np.array(errors, np.float64)
    least, most = error.min(), error.max()
    if least == most:
        return np.full(len(error), MAX_FITNESS)
    fit: Floats = MIN_FITNESS + (most - error) / (most - least) * (MAX_FITNESS - MIN_FITNESS)
    return fit


def chosen(fitnesses: Floats, count: int, chance: Generator) -> Integers:
    """Return the indices of `count` parents: stochastic sampling with replacement, in proportion to fitness."""
    return chance.choice(len(fitnesses), count, p=fitnesses / fitnesses.sum())


class Cut(NamedTuple):
    """The cut points of two individuals: in their templates `i` and `j`, both after `p` bits."""

    i: int
    j: int
    p: int


def cut(first: Individual, second: Individual, chance: Generator) -> Cut:
    """Return a random cut after which no child has more than `MAX_TEMPLATES` templates. There always is one."""
    n, m = len(first), len(second)
    i = int(chance.integers(n))
    lowest, highest = max(0, i + m - MAX_TEMPLATES), min(m - 1, MAX_TEMPLATES - n + i)
    return Cut(i, int(chance.integers(lowest, highest + 1)), int(chance.integers(first.shape[1] + 1)))


def crossover(first: Individual, second: Individual, at: Cut) -> tuple[Individual, Individual]:
    """Return the two children. Each consists of one parent up to the cut, and of the other parent after it.

    >>> children = crossover(np.zeros((3, 4), np.uint8), np.ones((2, 4), np.uint8), Cut(i=1, j=0, p=1))
    >>> [[bits.tolist() for bits in value] for value in children]
    [[[0, 0, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]], [[1, 0, 0, 0], [0, 0, 0, 0]]]
    """
    i, j, p = at
    one = np.concatenate((first[i, :p], second[j, p:]))[None]
    other = np.concatenate((second[j, :p], first[i, p:]))[None]
    return np.concatenate((first[:i], one, second[j + 1 :])), np.concatenate((second[:j], other, first[i + 1 :]))


def mutated(individual: Individual, chance: Generator) -> Individual:
    """Return the individual with each bit flipped with probability `MUTATION`."""
    return individual ^ (chance.random(individual.shape) < MUTATION).astype(np.uint8)


ELITE: Final = 2
"""Number of individuals of each generation that survive unchanged."""

Templates = tuple[Template, ...]
Errors = Callable[[Sequence[Templates]], Sequence[float]]


class Generation(NamedTuple):
    """The best set of a generation, whose number counts from 1. The search minimises `error`."""

    number: int
    error: float
    templates: Templates


def search(genes: Genes, errors: Errors, population: int, generations: int, seed: int) -> Iterator[Generation]:
    """Yield each generation's best template set. The best set of the last generation is the best of all.

    Parameters
    ----------
    genes
        Encoding of the templates.
    errors
        Function that returns the error of each set. All random numbers are drawn in `search`, so the result does not
        depend on how the errors are computed, or on how many cores.
    population
        Number of individuals of a generation. It must be even: all but the elite are children, made in pairs.
    generations
        Number of generations.
    seed
        Seed of all random numbers. Each generation has its own generator.

    References: docs/algorithms.md#template-search (Smith 1999, section 2.1.3).
    """
    chance = Generator(PCG64([seed, 0]))
    individuals = [genes.random(chance) for _ in range(population)]
    for number in range(1, generations + 1):
        sets = [genes.templates(individual) for individual in individuals]
        error = list(errors(sets))
        best = sorted(range(population), key=error.__getitem__)[:ELITE]
        yield Generation(number, error[best[0]], sets[best[0]])
        chance = Generator(PCG64([seed, number]))
        parents = [individuals[index] for index in chosen(fitness(error), population - ELITE, chance)]
        children = [
            mutated(child, chance)
            for first, second in zip(parents[::2], parents[1::2], strict=True)
            for child in crossover(first, second, cut(first, second, chance))
        ]
        individuals = [individuals[index] for index in best] + children

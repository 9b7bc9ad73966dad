"""The search for a template set: a genetic algorithm, in which the fittest sets have the most children."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from numpy.random import PCG64, Generator

from shadowtime.services.runtime_distribution.template import Template
from shadowtime.services.runtime_distribution.template_genes import Genes, chosen, crossover, cut, fitness, mutated

ELITE: Final = 2
"""Individuals of each generation that survive as they are."""

Templates = tuple[Template, ...]
Errors = Callable[[Sequence[Templates]], Sequence[float]]


class Generation(NamedTuple):
    """The best set of a generation; `error` is what the search makes small."""

    number: int
    error: float
    templates: Templates


def search(genes: Genes, errors: Errors, population: int, generations: int, seed: int) -> Iterator[Generation]:
    """Yield each generation's best template set; the best of the last is the best of all.

    Parameters
    ----------
    genes
        How sets are encoded.
    errors
        Returns the error of each of some sets. All draws of chance are made here, so the way in which it finds them,
        and on how many cores, changes nothing.
    population
        Individuals of a generation; even, so that all but the elite come in pairs.
    generations
        How many there are.
    seed
        Of all draws of chance; each generation has a generator of its own.

    References
    ----------
    docs/algorithms.md#template-search (Smith 1999, section 2.1.3).
    """
    chance = Generator(PCG64([seed, 0]))
    individuals = [genes.random(chance) for _ in range(population)]
    for number in range(1, generations + 1):
        found = [genes.templates(each) for each in individuals]
        error = list(errors(found))
        best = sorted(range(population), key=error.__getitem__)[:ELITE]
        yield Generation(number, error[best[0]], found[best[0]])
        chance = Generator(PCG64([seed, number]))
        parents = [individuals[each] for each in chosen(fitness(error), population - ELITE, chance)]
        children = [
            mutated(child, chance)
            for first, second in zip(parents[::2], parents[1::2], strict=True)
            for child in crossover(first, second, cut(first, second, chance))
        ]
        individuals = [individuals[each] for each in best] + children

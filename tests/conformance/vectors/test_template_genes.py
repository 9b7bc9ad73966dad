"""Worked examples of the search for template sets."""

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from shadowtime.services.runtime_distribution.templates.search import (
    RANGES,
    Cut,
    Genes,
    chosen,
    crossover,
    cut,
    fitness,
)
from shadowtime.services.runtime_distribution.templates.template import CHARACTERISTICS, MAX_TEMPLATES, PREDICTIONS
from tests.conformance.vectors.vector import vector


def test_encoding() -> None:
    example = vector("p3_encoding_bits")
    assert {
        "nodes": len(RANGES["processors"]),
        "runtime": len(RANGES["running"]),
        "history": len(RANGES["history"]),
    } == (example["n_values"])
    assert len(PREDICTIONS) == 2 ** example["predictor"]
    for part, values in (("nodes", "2^0..2^9"), ("runtime", "2^6..2^16"), ("history", "2^1..2^16")):
        assert example[part].startswith("1 + 4")
        assert values in example[part]
    fixed = example["predictor"] + example["abs_rel"] + 3 * (1 + 4)
    assert Genes([]).bits == fixed
    assert Genes(list(CHARACTERISTICS)).bits == fixed + len(CHARACTERISTICS)


def test_fitness_and_selection() -> None:
    example = vector("p3_fitness")
    found = fitness(example["errors"])
    assert found.tolist() == example["fitness"]
    assert (found / found.sum()).tolist() == example["selection_prob"]
    parents = chosen(found, 100_000, Generator(PCG64([1])))
    assert np.bincount(parents) / len(parents) == pytest.approx(example["selection_prob"], abs=0.005)
    assert fitness([5, 5, 5]).tolist() == [example["Fmax"]] * 3  # as the example says: uniform


def test_crossover() -> None:
    example = vector("p3_crossover")
    first, second = (np.array([list(template) for template in example[parent]]) for parent in ("T1", "T2"))
    children = crossover(first, second, Cut(example["i"] - 1, example["j"] - 1, example["p"]))
    assert [["".join(template) for template in child] for child in children] == example["children"]
    n, m, i, j = len(first), len(second), example["i"], example["j"]
    assert example["len_rule"] == "len1=i+m-j<=10, len2=j+n-i<=10"
    assert [len(child) for child in children] == [i + m - j, j + n - i]


def test_a_cut_keeps_to_the_rule_of_lengths() -> None:
    """Every cut that the rule allows is made, and no other."""
    most = 10
    assert most == MAX_TEMPLATES
    chance = Generator(PCG64([2]))
    for n, m in ((1, 1), (3, 2), (10, 10), (1, 10), (10, 1), (9, 8)):
        first, second = np.zeros((n, 4), np.uint8), np.ones((m, 4), np.uint8)
        legal = {
            (i, j)
            for i in range(1, n + 1)
            for j in range(1, m + 1)
            if 1 <= i + m - j <= most and 1 <= j + n - i <= most
        }
        made = [cut(first, second, chance) for _ in range(40 * len(legal))]
        assert {(at.i + 1, at.j + 1) for at in made} == legal
        assert {at.p for at in made} <= set(range(5))

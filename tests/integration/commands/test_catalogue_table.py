"""`shadowtime list` shows one thing at a time, whole, at 80 columns."""

import os

import pytest

from shadowtime.replayer.options import KINDS
from shadowtime.replayer.presentation.catalogue import everything
from shadowtime.services.catalogue import REGISTRIES
from tests.support.forked import run_forked


def listed(*arguments: str) -> tuple[int, str]:
    done = run_forked("list", *arguments, environment=os.environ | {"COLUMNS": "80"})
    return done.returncode, done.stdout + done.stderr


def words(text: str) -> str:
    return "".join(text.split())


def test_every_option_has_its_kind() -> None:
    assert set(KINDS.values()) == {*REGISTRIES, "mode"}


def test_all_kinds_with_the_names_of_each() -> None:
    status, told = listed()
    assert status == 0
    assert all(len(line) <= 80 for line in told.splitlines())
    for _, name, _, _ in everything():
        assert name in told


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind_says_what_each_does(kind: str) -> None:
    status, told = listed(kind)
    assert status == 0
    assert all(len(line) <= 80 for line in told.splitlines())
    for option, name, sentence, keys in everything():
        if option == KINDS[kind]:
            assert name in told
            assert words(sentence)[:30] in words(told) or len(sentence) > 60
        assert not any(f"\n    {key.name}=" in told for key in keys)


def test_one_name_has_its_keys_and_no_other() -> None:
    status, told = listed("predictors", "empirical")
    assert status == 0
    assert "prior=2.0" in told
    assert "last-two" not in told


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [(["policy"], "unknown kind 'policy'; known: policies,"), (["policies", "esay"], "no 'esay' among the policies")],
)
def test_what_is_not_there_is_named(arguments: list[str], culprit: str) -> None:
    status, told = listed(*arguments)
    assert (status, culprit in told, "Traceback" in told) == (2, True, False), told

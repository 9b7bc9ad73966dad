"""SPECs: what is one, what is not, and what a registry says of it."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.spec import Registry, Spec, SpecSettings, parse


class CrystalSettings(SpecSettings):
    """Settings of `Crystal`."""

    depth: int = Field(3, ge=1, le=9)
    clear: bool = True
    colour: Literal["red", "blue"] = "red"
    under: str = "none"


class Crystal:
    """A class that takes keys."""

    name = "crystal"
    Settings = CrystalSettings

    def __init__(self, settings: CrystalSettings) -> None:
        self.keys = settings


class Bare:
    """A class that takes none."""

    name = "bare"
    Settings = SpecSettings

    def __init__(self, settings: SpecSettings) -> None:
        self.keys = settings


REGISTRY: Registry[object] = Registry("ball", [Crystal, Bare])

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_/-]{0,8}", fullmatch=True)
PLAIN_VALUES = st.from_regex(r"[A-Za-z0-9_./+-]{1,8}", fullmatch=True)
SPECS: st.SearchStrategy[Spec] = st.recursive(
    st.builds(Spec, name=NAMES),
    lambda inner: st.builds(
        Spec, name=NAMES, keys=st.dictionaries(NAMES, PLAIN_VALUES | inner.map(str), min_size=1, max_size=3)
    ),
    max_leaves=6,
)


@given(SPECS)
def test_canonical_text_is_parsed_to_the_same_spec(spec: Spec) -> None:
    assert parse(str(spec)) == spec
    assert str(parse(str(spec))) == str(spec)


@given(SPECS)
def test_colon_and_parentheses_mean_the_same(spec: Spec) -> None:
    if spec.keys:
        assert parse(f"{spec.name}:{','.join(f'{key}={value}' for key, value in spec.keys.items())}") == spec


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("easy", Spec("easy")),
        ("  easy ", Spec("easy")),
        ("class-p90", Spec("class-p90")),
        ("a:b=c", Spec("a", {"b": "c"})),
        ("a( b = c , d = e )", Spec("a", {"b": "c", "d": "e"})),
        ("a:b=c=d", Spec("a", {"b": "c=d"})),
        ("a:b=c(d=e,f=g(h=i)),j=k", Spec("a", {"b": "c(d=e,f=g(h=i))", "j": "k"})),
        ("a(b=c(d=e(f=g)))", Spec("a", {"b": "c(d=e(f=g))"})),
    ],
)
def test_what_is_a_spec(text: str, spec: Spec) -> None:
    assert parse(text) == spec


def test_a_nested_value_is_a_spec_itself() -> None:
    inner = parse(parse("easy-sjbf:runtime=empirical(prior=2)").keys["runtime"])
    assert inner == Spec("empirical", {"prior": "2"})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "'' is not a SPEC: expected NAME"),
        ("  ", "is not a SPEC"),
        (":a=b", "is not a SPEC"),
        ("2easy", "'2easy' is not a SPEC"),
        ("two words", "'two words' is not a SPEC"),
        ("easy,fcfs", "'easy,fcfs' is not a SPEC"),
        ("easy\n", None),
        ("a:", "'' in 'a:' is not of the form key=value"),
        ("a()", r"'' in 'a\(\)' is not of the form key=value"),
        ("a:b", "'b' in 'a:b' is not of the form key=value"),
        ("a:b=", "'b=' in 'a:b=' is not of the form key=value"),
        ("a:=c", "'=c' in 'a:=c' is not of the form key=value"),
        ("a:b c=d", "'b c=d' in 'a:b c=d' is not of the form key=value"),
        ("a:b=c,", "'' in 'a:b=c,' is not of the form key=value"),
        ("a:b=c,b=d", "key 'b' appears twice in 'a:b=c,b=d'"),
        ("a:b=c, b =d", "key 'b' appears twice"),
        ("a(b=c", r"'a\(b=c' is not a SPEC: expected a closing parenthesis at its end"),
        ("a(b=c)d", "expected a closing parenthesis at its end"),
        ("a:b=c(d=e", r"parentheses in 'a:b=c\(d=e' do not match"),
        ("a:b=c)", "do not match"),
        ("a:b=)(", "do not match"),
        ("a(b=c)(d=e)", "do not match"),
    ],
)
def test_what_is_not_a_spec(text: str, complaint: str | None) -> None:
    if complaint is None:
        assert parse(text).name == text.strip()
        return
    with pytest.raises(SettingsError, match=complaint):
        parse(text)


@given(st.text(alphabet="ab:(),= 1", max_size=12))
def test_any_text_is_a_spec_or_a_settings_error(text: str) -> None:
    try:
        spec = parse(text)
    except SettingsError:
        return
    assert parse(str(spec)) == spec


def test_canonical_spells_every_key_out_in_the_order_of_the_class() -> None:
    canonical = REGISTRY.canonical(parse("crystal:clear=no"))
    assert str(canonical) == "crystal(depth=3,clear=no,colour=red,under=none)"
    assert list(canonical.keys) == list(CrystalSettings.model_fields)


@given(
    depth=st.integers(1, 9),
    clear=st.sampled_from(["yes", "no", "true", "0"]),
    colour=st.sampled_from(["red", "blue"]),
    order=st.permutations(["depth", "clear", "colour"]),
)
def test_canonical_of_canonical_is_the_same(depth: int, clear: str, colour: str, order: list[str]) -> None:
    values = {"depth": str(depth), "clear": clear, "colour": colour}
    canonical = REGISTRY.canonical(Spec("crystal", {key: values[key] for key in order}))
    assert REGISTRY.canonical(parse(str(canonical))) == canonical
    assert canonical.keys["clear"] == ("yes" if clear in ("yes", "true") else "no")


def test_a_nested_spec_stays_one_value() -> None:
    canonical = REGISTRY.canonical(parse("crystal:under=crystal(depth=2)"))
    assert parse(str(canonical)).keys["under"] == "crystal(depth=2)"


def test_build_hands_the_keys_over() -> None:
    built = REGISTRY.build(parse("crystal:depth=5"))
    assert isinstance(built, Crystal)
    assert built.keys == CrystalSettings(depth=5)
    assert isinstance(REGISTRY.build(parse("bare")), Bare)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("crystal:size=3", "ball 'crystal' has no key 'size'; known keys: depth, clear, colour, under"),
        ("bare:size=3", "ball 'bare' has no key 'size'; known keys: none"),
        ("crystal:depth=10", "ball 'crystal': depth=10: .*less than or equal to 9"),
        ("crystal:depth=deep", "ball 'crystal': depth=deep: "),
        ("crystal:clear=perhaps", "ball 'crystal': clear=perhaps: "),
        ("crystal:colour=green", "ball 'crystal': colour=green: .*'red' or 'blue'"),
    ],
)
@pytest.mark.parametrize("use", ["canonical", "build"])
def test_a_registry_names_the_keys_it_knows(use: str, text: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        getattr(REGISTRY, use)(parse(text))


@pytest.mark.parametrize("text", ["glass", "Crystal", "glass:depth=3"])
def test_a_registry_names_what_it_knows(text: str) -> None:
    with pytest.raises(SettingsError, match=f"unknown ball '{parse(text).name}'.* known: bare, crystal"):
        REGISTRY.canonical(parse(text))


def test_a_key_that_only_commands_read_is_named() -> None:
    """The key was called unknown, and itself recommended instead."""
    registry: Registry[object] = Registry("ball", [Crystal, Bare], common=["light"])
    message = "ball 'crystal' does not read the key 'light': commands accept it in the SPEC of a ball, but in a run it"
    with pytest.raises(SettingsError, match=message):
        registry.build(parse("crystal:light=blue"))

"""The catalogue of policies, predictors, adjustments and wait bounds, with the keys of their SPECs."""

from collections.abc import Iterator
from typing import NamedTuple

from shadowtime.services.runtime_distribution import PREDICTORS
from shadowtime.services.scheduler import AIMS, POLICIES, RECOMMENDED
from shadowtime.services.wait_bound import BOUNDERS
from shadowtime.services.walltime_adjustment import ADJUSTERS
from shadowtime.shared.messages import ClusterOpened
from shadowtime.shared.spec import Registry, Spec, Spelled, as_text, parse

REGISTRIES: dict[str, Registry[object]] = {  # by the name of the option whose value is a SPEC
    "policy": POLICIES,
    "runtime": PREDICTORS,
    "adjustment": ADJUSTERS,
    "wait-bound": BOUNDERS,
}


DEFAULTS: dict[str, str] = {
    option: ClusterOpened.model_fields[option.replace("-", "_")].default for option in REGISTRIES
}
"""The default SPEC of a run, by option."""


class Configuration(NamedTuple):
    """A policy with the run-time predictor and the adjustment that it uses. Each SPEC has every key spelled out."""

    policy: str
    runtime: str
    adjustment: str


def canonical(option: str, spec: str) -> str:
    """Return `spec` with every key spelled out.

    >>> canonical("adjustment", "auto:minimum=20")
    'auto(threshold=0.5,minimum=20,rank=nearest,bad=0.02)'
    """
    return str(REGISTRIES[option].canonical(parse(spec)))


def files_of(option: str, spec: str) -> dict[str, str]:
    """Return the contents of each file that `spec` names, as its full form has them, by the name in `spec`.

    >>> files_of("policy", "easy:runtime=templates(set=mean(key=user))")
    {}
    """
    name, keys = parse(spec).name, parse(spec).keys
    of_class = Spec(parse(RECOMMENDED[name]).name if name in RECOMMENDED else name, keys)
    contents = {
        keys[key]: content for key, content in REGISTRIES[option].contents(of_class).items() if content != keys[key]
    }
    for other in ("runtime", "adjustment"):
        if option == "policy" and other in keys:
            contents |= files_of(other, keys[other])
    return contents


def configure(policy: str, runtime: str | None = None, adjustment: str | None = None) -> Configuration:
    """Return the full configuration of a policy's SPEC.

    The keys `runtime` and `adjustment` of the SPEC override the arguments of these names. If neither names a predictor,
    the policy's default predictor is used. If neither names an adjustment, the default adjustment of a run is used.

    >>> configure("easy-sjbf:runtime=last-two,fallback=incremental")
    Configuration(policy='easy-sjbf(fallback=incremental)', runtime='last-two', adjustment='none')
    >>> configure("guarded").runtime.partition("(")[0], configure("guarded", "requested").runtime
    ('empirical', 'requested')
    """
    spec = _without_short_name(policy)
    keys = dict(spec.keys)
    runtime, adjustment = keys.pop("runtime", runtime), keys.pop("adjustment", adjustment)
    policy = canonical("policy", str(Spec(spec.name, keys)))
    return Configuration(
        policy,
        canonical("runtime", runtime or POLICIES.classes[spec.name].predictor),
        canonical("adjustment", adjustment or DEFAULTS["adjustment"]),
    )


def chooses(policy: str, option: str) -> bool:
    """Return whether the SPEC of a policy, or what its short name stands for, has the key `option`.

    >>> chooses("easy:runtime=last-two", "runtime"), chooses("best", "runtime"), chooses("guarded", "runtime")
    (True, True, False)
    """
    return option in _without_short_name(policy).keys


def _without_short_name(policy: str) -> Spec:
    spec = parse(policy)
    if spec.name not in RECOMMENDED:
        return spec
    recommended = parse(RECOMMENDED[spec.name])
    return Spec(recommended.name, {**recommended.keys, **spec.keys})


def spelled(option: str, spec: str) -> Spelled:
    """Return a canonical SPEC in three parts: its name, the keys that differ from their defaults, and the other keys.

    >>> str(spelled("adjustment", canonical("adjustment", "auto:minimum=20")))
    'auto(minimum=20,threshold=0.5,rank=nearest,bad=0.02)'
    """
    parsed = parse(spec)
    settings = REGISTRIES[option].classes[parsed.name].Settings
    plain = {key for key, value in parsed.keys.items() if value == as_text(settings.model_fields[key].default)}
    keys = {key: f"{key}={value}" for key, value in parsed.keys.items()}
    return Spelled(
        parsed.name,
        tuple(text for key, text in keys.items() if key not in plain),
        tuple(text for key, text in keys.items() if key in plain),
    )


def spelled_out(configuration: Configuration) -> Spelled:
    """Return one policy SPEC for a whole configuration, with the predictor and the adjustment as keys.

    >>> str(spelled_out(configure("easy", "last-two")))
    'easy(runtime=last-two,adjustment=none)'
    """
    name, chosen, defaults = spelled("policy", configuration.policy)
    plain = configure(name)
    for option in ("runtime", "adjustment"):
        spec = str(getattr(configuration, option))
        text = (f"{option}={spelled(option, spec)}",)
        chosen, defaults = (chosen, defaults + text) if spec == getattr(plain, option) else (chosen + text, defaults)
    return Spelled(name, chosen, defaults)


class SpecKey(NamedTuple):
    """One key of a SPEC."""

    name: str
    default: str
    description: str


def entries() -> Iterator[tuple[str, str, str, list[SpecKey]]]:
    """Yield the option, name, description and keys of every policy, predictor, adjustment and wait bound.

    The recommended policies come first, without keys.
    """
    for name, spec in RECOMMENDED.items():
        yield "policy", name, f"The policy that the project recommends{AIMS[name]}: {spec}", []
    for option, registry in REGISTRIES.items():
        for name, chosen in sorted(registry.classes.items()):
            keys = [
                SpecKey(key, as_text(field.default), field.description or "")
                for key, field in chosen.Settings.model_fields.items()
            ]
            yield option, name, sentence_of(chosen), keys


def sentence_of(listed: object) -> str:
    """Return the first paragraph of the docstring of a class or function, as one line."""
    return (listed.__doc__ or "").partition("\n\n")[0].replace("\n    ", " ")

"""Names on the page. A long SPEC has a short name everywhere and is spelled out once."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from shadowtime.replayer.comparison import RunRecord
from shadowtime.replayer.presentation import numbered, short_names
from shadowtime.replayer.report.markup import escape, table

Document = Mapping[str, Any]
MAX_NAME = 32
"""Maximum length of a name on the page, in characters: a policy and its predictor."""

WAITS = ("wait_forecasts", "wait_bounds", "expected_starts")
"""Keys of wait scores in the `--json` document. The last exists only if the site's scheduler stated expected starts."""


def named(document: Document, runs: Sequence[RunRecord]) -> tuple[Document, list[RunRecord]]:
    """Return a `--json` document and its run records with short names of policies, predictors and schemes.

    `spelled_out`, called with the original document, explains the short names.
    """
    policies, others = _policies(document), _kinds(document)
    decided = [policies[row["policy"]] for row in document["policies"]] if document["settings"]["obeyed"] else []
    named_rows = {
        key: [
            row
            | {
                kind: names.get(row[kind], row[kind])
                for kind, names in (("policy", policies), *others.items())
                if kind in row
            }
            | ({"runtime": _head(row["runtime"])} if "runtime" in row else {})
            for row in document[key]
        ]
        for key in ("policies", "run_time_predictions", "walltime_adjustments", *WAITS)
        if key in document
    }
    schemes = named_rows["walltime_adjustments"]
    alike = Counter(row["scheme"] for row in schemes)
    for row, policy in zip(schemes, decided, strict=False):  # `decided` is empty for a recorded log
        if alike[row["scheme"]] > 1:
            row["scheme"] += f" under {policy}"
    settings = document["settings"]
    settings = settings | {"baseline": policies.get(settings["baseline"], settings["baseline"])}
    return {**document, **named_rows, "settings": settings}, [run.called(policies[run.plan.label]) for run in runs]


def spelled_out(document: Document) -> str:
    """Return a table of short names and their SPECs; empty without names to explain.

    Policies are listed if they decided the starts. Predictors and schemes are listed if no listed policy has them.
    """
    policies = _policies(document)
    rows = [*document["policies"], *document["wait_forecasts"]] if document["settings"]["obeyed"] else []
    configured = list({policies[row["policy"]]: row["configuration"] for row in rows}.items())
    known = "".join(spec for _, spec in configured)
    configured += [
        (name, spec)
        for names in _kinds(document).values()
        for spec, name in names.items()
        if spec != name and spec not in known
    ]
    if not configured:
        return ""
    body = [
        [escape(name), f"<code class=spec>{escape(spec.replace(',', ', ')).replace('(', '(<wbr>')}</code>"]
        for name, spec in configured
    ]
    note = "Every key spelled out; what differs from the defaults comes first."
    return table(["name", "SPEC"], body, "What the names stand for", note)


def _policies(document: Document) -> dict[str, str]:
    """Return the short name of each policy, by its name as typed."""
    rows = (row for key in ("policies", *WAITS) for row in document.get(key, ()))
    return short_names(dict.fromkeys(row["policy"] for row in rows), MAX_NAME)


def _kinds(document: Document) -> dict[str, dict[str, str]]:
    """Return the short name of each SPEC, for the kinds `predictor` and `scheme`.

    A short name is the part before `(`. It has a number if several SPECs of its kind have the same part.
    """
    return {
        kind: numbered({row[kind]: _head(row[kind]) for row in document[key]}, " ")
        for kind, key in (("predictor", "run_time_predictions"), ("scheme", "walltime_adjustments"))
    }


def _head(spec: str) -> str:
    return spec.partition("(")[0]

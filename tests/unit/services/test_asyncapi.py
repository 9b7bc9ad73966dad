"""The committed AsyncAPI document is the one that the models make."""

import orjson

from shadowtime.services.asyncapi import document
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.distributions.histogram import EDGES
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope
from shadowtime.shared.stages.topics import DEAD_LETTERS, FLOW

COMMITTED = ROOT / "asyncapi.json"


def test_the_committed_document_is_up_to_date() -> None:
    again = "run: shadowtime asyncapi > asyncapi.json"
    assert orjson.loads(COMMITTED.read_bytes()) == document(), again


def test_every_topic_is_a_channel_and_every_reference_resolves() -> None:
    whole = document()
    assert set(whole["channels"]) == {*FLOW, DEAD_LETTERS}

    def references(part: object) -> list[str]:
        if isinstance(part, dict):
            own = [part["$ref"]] if "$ref" in part else []
            return own + [found for value in part.values() for found in references(value)]
        return [found for value in part for found in references(value)] if isinstance(part, list) else []

    for reference in references(whole):
        place: object = whole
        for step in reference.removeprefix("#/").split("/"):
            assert isinstance(place, dict)
            assert step in place, reference
            place = place[step]


def test_the_edges_of_bins_are_there_as_numbers_and_no_module_is_named() -> None:
    schemas = orjson.loads(COMMITTED.read_bytes())["components"]["schemas"]
    assert schemas["RunTimeBinEdges"]["const"] == EDGES.tolist()
    assert "shared.run_time_bins" not in COMMITTED.read_text()


def test_who_sends_jobs_says_nothing_that_only_stages_say() -> None:
    from jsonschema import Draft202012Validator  # here: it takes seconds, in every process that collects tests

    whole = document()
    validator = Draft202012Validator({"$ref": "#/components/schemas/SourceEnvelope", "components": whole["components"]})
    opened = Envelope(run="mine", sequence=0, event=ClusterOpened(time=0, cluster="mine", processors=4))
    said = orjson.loads(opened.to_bytes())
    assert "send" in {each["action"] for each in whole["operations"].values()}
    assert validator.is_valid({name: said[name] for name in ("run", "sequence", "event")})
    assert not validator.is_valid({"run": "mine", "sequence": 0, "event": {"kind": "Decided", "time": 0}})
    assert not validator.is_valid({"run": "mine", "sequence": 0, "event": said["event"], "run_time": None})

"""The committed AsyncAPI document is the one that the models make."""

import orjson

from shadowtime.services.asyncapi import document
from shadowtime.shared.paths import ROOT
from shadowtime.shared.topics import DEAD_LETTERS, FLOW

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

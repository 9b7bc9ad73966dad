"""The topics as an AsyncAPI 3 document, made from the models: `shadowtime asyncapi`."""

from typing import Any

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.events import SCHEMA_VERSION, Envelope
from shadowtime.shared.topics import DEAD_LETTERS, FLOW, JOBS

TEMPLATE = "#/components/schemas/{model}"


def document() -> dict[str, Any]:
    """Return the document.

    >>> sorted(document()["channels"])[:2]
    ['dead-letters', 'decisions']
    """
    envelope = Envelope.model_json_schema(ref_template=TEMPLATE, mode="serialization")
    schemas = envelope.pop("$defs")
    writers = {stage.writes: stage.name for stage in STAGES} | {JOBS: "the replayer"}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Shadowtime",
            "version": str(SCHEMA_VERSION),
            "description": "Job events of batch machines, enriched stage by stage. Each topic carries the whole log of "
            "every run, keyed by run: one message per sequence number, in order once duplicates are dropped.",
            "license": {"name": "Apache 2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {topic: _channel(topic, f"Written by {writers[topic]}.") for topic in FLOW}
        | {DEAD_LETTERS: _channel(DEAD_LETTERS, "Messages that no stage could use; the headers say why.")},
        "operations": {
            f"receive-{topic}": {"action": "receive", "channel": {"$ref": f"#/channels/{topic}"}}
            for topic in (*FLOW, DEAD_LETTERS)
        },
        "components": {
            "schemas": {"Envelope": envelope, **schemas},
            "messages": {
                "envelope": {
                    "name": "Envelope",
                    "payload": {"$ref": TEMPLATE.format(model="Envelope")},
                    "bindings": {"kafka": {"key": {"type": "string", "description": "the run"}}},
                },
                "dead-letter": {
                    "name": "DeadLetter",
                    "contentType": "application/octet-stream",
                    "headers": {
                        "type": "object",
                        "properties": {
                            name: {"type": "string"}
                            for name in ("stage", "topic", "partition", "offset", "reason", "bytes")
                        },
                    },
                    "payload": {"description": "the message as it came"},
                },
            },
        },
    }


def _channel(topic: str, description: str) -> dict[str, Any]:
    message = "dead-letter" if topic == DEAD_LETTERS else "envelope"
    return {
        "address": topic,
        "description": description,
        "messages": {message: {"$ref": f"#/components/messages/{message}"}},
    }

"""The topics as an AsyncAPI 3 document, generated from the message models: `shadowtime asyncapi`."""

from typing import Any

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.distributions import EDGES
from shadowtime.shared.messages import SCHEMA_VERSION, Envelope
from shadowtime.shared.stages import DEAD_LETTERS, FLOW, JOBS

TEMPLATE = "#/components/schemas/{model}"

RULES = """Job events of batch machines, enriched stage by stage. Operations are those of an application beside \
Shadowtime: it may receive every topic, and send `jobs` for runs of its own.

Time: whole seconds on the cluster's own time line; `unix_start` of `ClusterOpened` is the Unix time of its second \
0. Durations are seconds, sizes processors, probabilities and shares 0 to 1. Fields without a value are left out.

Place: every topic has the same number of partitions, and a run lies on partition CRC-32(run, as UTF-8) modulo \
that number of each. Its name is the key. Runs of one partition mix.

Order and delivery: each topic carries the whole log of every run, one message per `sequence`, from 0 without \
holes. Delivery is at least once: after a failure messages come again, the same and in the same order. A receiver \
drops those of a run whose `sequence` is not above the last one that it took, and has each exactly once, in order."""

SENDING = """Envelope 0 of a run is `ClusterOpened`, the last one `ClusterClosed`. Time does not go back. Events of \
one instant come as `JobEnded`, `JobSuspended`, `JobWithdrawn`, `CapacityChanged`, `JobResumed`, `JobChanged`, \
`JobSubmitted`, `JobExpected`, one `SchedulingPoint`, `JobStarted`; a late event bears its own time as `happened`, \
a job its own `eligible_time`. In the mode `recorded` the sender tells what its machine did, and \
decisions are advice; in the mode `closed` it waits for the `Decided` under the sequence of each `SchedulingPoint`, \
tells its kills and starts, and ends jobs at their limits. Send with acks=all, one producer for a run. What is no \
such message, or not the next of its run, is a dead letter; an event that contradicts those before it is `Rejected` \
in its place, changes nothing, and is a dead letter too."""

EDGES_TOLD = """Edges of the bins of `RunTimePrediction.histogram`, in seconds: `histogram[i]` is the probability \
of a run time above edge i and up to edge i + 1; bin 0 has edge 0 too, and counts as 1 second. Within a bin the \
logarithm of the run time is uniform. No bin is open: the last edge is beyond the longest time that a message can \
carry. Bins that a histogram leaves out at its end have probability 0; its sum may differ from 1 by rounding."""


def document() -> dict[str, Any]:
    """Return the AsyncAPI document of all topics.

    >>> sorted(document()["channels"])[:2]
    ['dead-letters', 'decisions']
    """
    envelope = Envelope.model_json_schema(ref_template=TEMPLATE, mode="serialization")
    schemas = envelope.pop("$defs")
    writers = {stage.writes: stage.name for stage in STAGES} | {JOBS: "the replayer, or whoever tells of a machine"}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Shadowtime",
            "version": str(SCHEMA_VERSION),
            "description": RULES,
            "license": {"name": "Apache 2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {topic: _channel(topic, f"Written by {writers[topic]}.") for topic in FLOW}
        | {DEAD_LETTERS: _channel(DEAD_LETTERS, "Messages that no stage could use; the headers say why.")},
        "operations": {
            f"receive-{topic}": {"action": "receive", "channel": {"$ref": f"#/channels/{topic}"}}
            for topic in (*FLOW, DEAD_LETTERS)
        }
        | {
            f"send-{JOBS}": {
                "action": "send",
                "channel": {"$ref": f"#/channels/{JOBS}"},
                "summary": "Tell the events of a run of your own.",
                "description": SENDING,
            }
        },
        "components": {
            "schemas": {
                "Envelope": envelope,
                "SourceEnvelope": _of_source(envelope),
                "RunTimeBinEdges": {
                    "description": EDGES_TOLD,
                    "type": "array",
                    "items": {"type": "number"},
                    "const": EDGES.tolist(),
                },
                **schemas,
            },
            "messages": {
                "envelope": _message("Envelope"),
                "source-envelope": _message("SourceEnvelope"),
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
    message = {JOBS: "source-envelope", DEAD_LETTERS: "dead-letter"}.get(topic, "envelope")
    return {
        "address": topic,
        "description": description,
        "messages": {message: {"$ref": f"#/components/messages/{message}"}},
    }


def _message(model: str) -> dict[str, Any]:
    return {
        "name": model,
        "payload": {"$ref": TEMPLATE.format(model=model)},
        "bindings": {"kafka": {"key": {"type": "string", "description": "the run"}}},
    }


def _of_source(envelope: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an envelope on topic `jobs`: without the fields and events that only stages emit."""
    foreign = {name for stage in STAGES for name in stage.later_fields} | {"Rejected"}
    properties = {name: schema for name, schema in envelope["properties"].items() if name not in foreign}
    kinds = {kind: ref for kind, ref in properties["event"]["discriminator"]["mapping"].items() if kind not in foreign}
    properties["event"] = properties["event"] | {
        "discriminator": {"propertyName": "kind", "mapping": kinds},
        "oneOf": [{"$ref": ref} for ref in kinds.values()],
    }
    description = "An event of a run as its source tells it; `run` is its key in Kafka."
    return envelope | {"title": "SourceEnvelope", "description": description, "properties": properties}

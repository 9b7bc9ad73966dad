"""The topics as an AsyncAPI 3 document, generated from the message models: `shadowtime asyncapi`."""

from typing import Any

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.distributions import EDGES
from shadowtime.shared.messages import SCHEMA_VERSION, Envelope
from shadowtime.shared.stages import DEAD_LETTERS, FLOW, JOBS

TEMPLATE = "#/components/schemas/{model}"

RULES = """Job events of batch machines, enriched stage by stage. The operations are those of an external application: \
it may receive every topic, and send the events of its own runs to `jobs`.

Units: times are whole seconds on the cluster's own time line; `unix_start` of `ClusterOpened` is the Unix time of its \
second 0. Durations are in seconds, sizes in processors; probabilities and shares are 0 to 1. Fields without a value \
are omitted.

Partitions: every topic has the same number N of partitions. The key of a message is the name of its run. A run is on \
partition CRC-32(name in UTF-8) modulo N of every topic. Messages of several runs alternate on a partition.

Order and delivery: each topic except `dead-letters` has the whole log of every run, one message for each `sequence`, \
from 0 on without gaps. Delivery is at least once: after a failure, messages are sent again, unchanged and in the same \
order. For each run, a receiver drops a message whose `sequence` is not above that of the last accepted message. It \
then handles each message exactly once, in order."""

SENDING = """Envelope 0 of a run is `ClusterOpened`, the last one `ClusterClosed`. Time does not go back. Events of \
one instant are in this order: `JobEnded`, `JobSuspended`, `JobWithdrawn`, `CapacityChanged`, `JobResumed`, \
`JobChanged`, `JobSubmitted`, `JobExpected`, one `SchedulingPoint`, `JobStarted`. An event that is reported late has \
its true time as `happened`. If the wait of a job begins at another time than `time`, that time is its \
`eligible_time`. In mode `recorded`, the sender reports what its machine did, and decisions are advice. In mode \
`closed`, the sender waits for the `Decided` with the `sequence` of each `SchedulingPoint`. It then sends the events \
of the decided kills and starts, and ends jobs at their limits. Send with acks=all, and with one producer for each \
run. A message that is invalid, or that leaves a gap after the last `sequence` of its run, is copied to \
`dead-letters`. A repeated message is dropped. An event that contradicts earlier events changes nothing: a `Rejected` \
replaces it, and it is copied to `dead-letters`, too."""

EDGES_TOLD = """Edges of the bins of `RunTimePrediction.histogram`, in seconds: `histogram[i]` is the probability \
of a run time above edge i and up to edge i + 1. Bin 0 includes edge 0, and all its run times count as 1 second. In \
each other bin, the logarithm of the run time is uniform. The last edge is beyond the longest time that a message can \
have. Bins that are omitted at the end of a histogram have probability 0. Because of rounding, the sum may differ \
from 1."""


def document() -> dict[str, Any]:
    """Return the AsyncAPI document of all topics.

    >>> sorted(document()["channels"])[:2]
    ['dead-letters', 'decisions']
    """
    envelope = Envelope.model_json_schema(ref_template=TEMPLATE, mode="serialization")
    schemas = envelope.pop("$defs")
    writers = {stage.writes: stage.name for stage in STAGES} | {JOBS: "the source of the run, such as the replayer"}
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
        | {DEAD_LETTERS: _channel(DEAD_LETTERS, "Messages that a stage could not use; the headers have the reason.")},
        "operations": {
            f"receive-{topic}": {"action": "receive", "channel": {"$ref": f"#/channels/{topic}"}}
            for topic in (*FLOW, DEAD_LETTERS)
        }
        | {
            f"send-{JOBS}": {
                "action": "send",
                "channel": {"$ref": f"#/channels/{JOBS}"},
                "summary": "Send the events of your own run.",
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
                    "payload": {"description": "the message as received"},
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
    description = "An event of a run as its source sends it; `run` is its key in Kafka."
    return envelope | {"title": "SourceEnvelope", "description": description, "properties": properties}

"""Answers of stages whose state is saved and taken up on the way."""

import orjson

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages.envelope import Envelope, Rejected
from shadowtime.shared.stages.stage import Stage, StageRun
from tests.support.strategies.hostile import Json


def answer_all(messages: list[Json], stages: tuple[Stage, ...] = STAGES, *, every: int = 1) -> list[Envelope]:
    """Return the answers of the last stage to messages that travel as bytes; each state is saved and taken up."""
    runs = [StageRun(stage) for stage in stages]
    answers: list[Envelope] = []
    for sequence, message in enumerate(messages):
        told = Envelope.from_bytes(orjson.dumps({"run": "r", "cluster": "c", "sequence": sequence, **message}))
        for place, run in enumerate(runs):
            answer = run.push(told)
            assert answer is not None
            if isinstance(answer.event, Rejected) and answer.event != told.event:
                assert getattr(answer.event, "code", "rule") != "failed", answer.event.reason
            told = Envelope.from_bytes(answer.to_bytes())
            assert told == answer
            if run.handler is not None and sequence % every == 0:
                saved = run.snapshot()
                runs[place] = StageRun(run.stage)
                runs[place].restore(saved)
                assert runs[place].snapshot() == saved
        answers.append(told)
    return answers

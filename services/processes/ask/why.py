"""Explanations of waits: the question why a job waits, and its answer from the state of stage `scheduler` in Redis."""

from collections.abc import Sequence
from functools import partial
from textwrap import wrap

from pydantic import Field, field_validator

from shadowtime.services.processes.ask.answers import Answers
from shadowtime.services.processes.ask.questions import JobId, RunName, age_line, log_age
from shadowtime.services.processes.ask.words import ClusterWords, is_job_id
from shadowtime.shared.errors import Unanswerable
from shadowtime.shared.formatting import utc_clock
from shadowtime.shared.messages import Explains, Explanation, FrozenModel
from shadowtime.shared.quoting import one_line, quote
from shadowtime.shared.stages import StageRun
from shadowtime.shared.text import sentences_of

COLUMNS = 80
MAX_SEARCHED = 8
"""The maximum number of runs that are searched for a job if the question names no run: the followed run, the latest."""


class JobQuestion(FrozenModel):
    """A question about one job that waits, runs, or was among the last to end."""

    cluster: str = Field(min_length=1, max_length=200, description="the cluster, by name")
    job: JobId = Field(description="id of the job, such as 2754_12 for a task of an array, or its number in the log")

    @field_validator("job")
    @classmethod
    def _is_id(cls, text: str) -> str:
        if not is_job_id(text):
            raise ValueError("expected the id of a job, such as 2754 or 2754_12")
        return text

    run: RunName | None = Field(
        default=None,
        description=f"a run that knows the job; by default {MAX_SEARCHED} runs are searched, the followed run first",
    )


class Why(Explanation):
    """The state of one job and the reasons for it, as of the last event of the run that the stage has stored."""

    job_id: str = Field(description="id of the job on its cluster")
    sentences: tuple[str, ...] = Field(description="the state and its reasons in sentences")


class Explanations(Answers):
    """Answers to the question why a job waits, from the state of stage `scheduler`."""

    async def explain(self, question: JobQuestion) -> Why:
        """Return the state of a job and the reasons for it.

        Raises
        ------
        Unanswerable
            If there is no such cluster, run or job.
        StoreError, SnapshotMismatch
            If the stored state cannot be read.
        """
        async with self._turn:
            if question.run is not None:
                await self._require(question.cluster, question.run)
            runs: Sequence[str] = await self._in_order(question.cluster) if question.run is None else [question.run]
            missing = []
            for run in runs[:MAX_SEARCHED]:
                words = await self.words.of(question.cluster, run)
                answer = await self._follower(run).ask(partial(_explain, question, run, words))
                if isinstance(answer, Why):
                    return answer
                missing.append(f"run {quote(run)}: {answer or 'it has not been opened yet'}")

            if len(runs) > MAX_SEARCHED:
                missing.append(f"{len(runs) - MAX_SEARCHED} further runs were not searched; name one with run")

        raise Unanswerable(404, f"job {question.job} is unknown; {'; '.join(missing)}", "job")


def _explain(question: JobQuestion, run: str, words: ClusterWords, state: StageRun) -> Why | str | None:
    """Return the answer, or a text about the known jobs if the job is unknown. Return None if the run is not open."""
    handler = state.handler
    if handler is None:
        return None
    if handler.opened.cluster != question.cluster:
        of = f"{quote(run)} is a run of cluster {quote(handler.opened.cluster)}"
        raise Unanswerable(404, f"{of}, not of {quote(question.cluster)}", "run")
    if not isinstance(handler, Explains):
        raise TypeError(f"stage {state.stage.name} does not explain waits")
    explanations = (handler.explain(number, run, state.sequence) for number in words.lives(question.job))
    explanation = next((explanation for explanation in explanations if explanation is not None), None)
    if explanation is None:
        return handler.known(words.job)
    job_id = words.job(explanation.job_number)
    age = age_line(log_age(handler.opened, handler.time))
    return Why(**vars(explanation), job_id=job_id, sentences=(*age, *sentences_of(explanation, words.job)))


def why_text(why: Why) -> str:
    """Return the answer for people, in lines of at most 80 columns."""
    at = utc_clock(why.time, why.unix_start)
    title = f"cluster {one_line(why.cluster)}, run {one_line(why.run)}, at {at}, after event {why.sequence:,}"
    lines = [line for sentence in (title, *why.sentences) for line in wrap(sentence, COLUMNS, subsequent_indent="  ")]
    return "\n".join(lines)

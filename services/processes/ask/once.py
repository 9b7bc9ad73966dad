"""Answers to single questions, for people and for programs."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

from rich.console import Group

from shadowtime.services.explained import EXPLAINED
from shadowtime.services.pipeline import STAGES
from shadowtime.services.processes.ask.advice import AdviceQuestion, Advising
from shadowtime.services.processes.ask.answers import MAX_FOLLOWED, Answers
from shadowtime.services.processes.ask.questions import OffersQuestion, Question, read_as
from shadowtime.services.processes.ask.tables import advice_table, answer_table, offers_table, ranges_table
from shadowtime.services.processes.ask.why import Explanations, JobQuestion, why_text
from shadowtime.services.processes.ask.words import NAMES_OF, WordReader
from shadowtime.shared.stages import Stage
from shadowtime.shared.streaming import RedisReader, Settings, reading

(STAGE,) = (stage for stage in STAGES if stage.name == "wait_bound")
ADVISE = ("runtime_distribution", "wait_bound", "scheduler")
"""The stages whose states advice needs, in the order of the arguments of `Advising`."""


class PrintedAnswer(NamedTuple):
    """An answer as JSON, and in a printable form for people."""

    json: str
    shown: Any


Reading = Callable[[Settings, str], AbstractAsyncContextManager[RedisReader]]


@asynccontextmanager
async def advising(
    settings: Settings, read: Reading = reading, followed: int = MAX_FOLLOWED
) -> AsyncIterator[Advising]:
    """Yield an adviser. `read` opens the states of a stage in Redis. `followed` runs of each stage stay in memory."""
    stages = {stage.name: stage for stage in STAGES}
    async with AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(read(settings, name)) for name in ADVISE]
        words = WordReader(await stack.enter_async_context(read(settings, NAMES_OF)))
        yield Advising(
            *(Answers(stages[name], reader, followed, words) for name, reader in zip(ADVISE, readers, strict=True))
        )


@asynccontextmanager
async def answering_from(settings: Settings, stage: Stage) -> AsyncIterator[tuple[RedisReader, WordReader]]:
    """Yield a reader of the states of a stage in Redis, and a reader of the names of clusters."""
    async with reading(settings, stage.name) as reader, reading(settings, NAMES_OF) as names:
        yield reader, WordReader(names)


async def bound_once(settings: Settings, parameters: Mapping[str, object]) -> PrintedAnswer:
    """Return the bounds on the wait of a job. Raise the same errors as `Answers.answer`."""
    question = read_as(Question, parameters)
    async with answering_from(settings, STAGE) as (reader, words):
        answer = await Answers(STAGE, reader, words=words).answer(question)
    tables = [answer_table(question, answer), *([ranges_table(answer)] if answer.ranges else [])]
    return PrintedAnswer(answer.model_dump_json(), Group(*tables))


async def offers_once(settings: Settings, parameters: Mapping[str, object]) -> PrintedAnswer:
    """Return the bounds of several clusters and queues. Raise the same errors as `Answers.offers`."""
    question = read_as(OffersQuestion, parameters)
    async with answering_from(settings, STAGE) as (reader, words):
        offers = await Answers(STAGE, reader, words=words).offers(question)
    return PrintedAnswer(offers.model_dump_json(), offers_table(question, offers))


async def advise_once(settings: Settings, parameters: Mapping[str, object]) -> PrintedAnswer:
    """Return the advice about one job. Raise the same errors as `Advising.advise`."""
    question = read_as(AdviceQuestion, parameters)
    async with advising(settings) as advises:
        advice = await advises.advise(question)
    return PrintedAnswer(advice.model_dump_json(), advice_table(question, advice))


async def explain_once(settings: Settings, parameters: Mapping[str, object]) -> PrintedAnswer:
    """Return the state of a job and the reasons for it. Raise the same errors as `Explanations.explain`."""
    question = read_as(JobQuestion, parameters)
    async with answering_from(settings, EXPLAINED) as (reader, words):
        why = await Explanations(EXPLAINED, reader, words=words).explain(question)
    return PrintedAnswer(why.model_dump_json(), why_text(why))

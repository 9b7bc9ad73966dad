"""The endpoint that answers questions: bounds on waits, advice, explanations of waits."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.services.processes.ask.advice import Advice, AdviceQuestion, Advising
    from shadowtime.services.processes.ask.answers import Answers
    from shadowtime.services.processes.ask.cluster_queue import QueueAnswer, QueueQuestion, queues
    from shadowtime.services.processes.ask.gate import Gate, Viewer, require_own
    from shadowtime.services.processes.ask.once import (
        advise_once,
        advising,
        bound_once,
        explain_once,
        offers_once,
    )
    from shadowtime.services.processes.ask.questions import Problem, age_line, log_age, read_as
    from shadowtime.services.processes.ask.queue_text import SORTS, queue_csv, queue_lines
    from shadowtime.services.processes.ask.routes import answering, serve, without_traceback
    from shadowtime.services.processes.ask.words import (
        NAMES_OF,
        NO_WORDS,
        SEARCHED,
        ClusterWords,
        WordReader,
        is_job_id,
    )

__getattr__ = lazy_exports(__name__)

"""The vocabulary of a cluster: a job, its execution, the order of events, a source of events."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.cluster.event_order import EVENT_ORDER, PLACE, in_order
    from shadowtime.shared.cluster.execution import Execution
    from shadowtime.shared.cluster.free_resources import FreeResources
    from shadowtime.shared.cluster.job import OF_ANY_LOG, TEXTS_OF_JOB, UNKNOWN, Job, job_of
    from shadowtime.shared.cluster.source import KILLED, LIMIT, OUTCOMES, RESIZED, Source, none_if_now

__getattr__ = lazy_exports(__name__)

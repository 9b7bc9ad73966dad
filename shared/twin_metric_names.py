"""Metrics of shadows, and of what they come to beside the real cluster."""

from shadowtime.shared.metric import Metric

SHADOW_EVENTS = Metric("shadowtime_shadow_events_total", ("shadow",), "1", "Events of a shadow that were told.")
SHADOW_BEHIND = Metric("shadowtime_shadow_behind_seconds", ("shadow",), "seconds", "How far it is behind its cluster.")


def _twin(name: str, unit: str, meaning: str, *labels: str) -> Metric:
    return Metric(f"shadowtime_twin_{name}", ("shadow", *labels), unit, meaning)


TWIN_JOBS = _twin("jobs", "jobs", "Jobs of a cluster that are compared with the same in a shadow.", "shape")
TWIN_WAIT = _twin("wait_seconds", "seconds", "Their mean wait, really and in the shadow.", "shape", "of")
TWIN_LONGEST = _twin("longest_wait_seconds", "seconds", "Their longest wait.", "shape", "of")
TWIN_SLOWDOWN = _twin("slowdown", "1", "Their mean bounded slowdown (10 s, clamped at 1).", "shape", "of")
TWIN_CHANGE = _twin("wait_change", "share", "Change of their mean wait, and its 95 % interval.", "shape", "bound")
TWIN_MOVED = _twin("moved_share", "share", "Jobs that start a minute sooner or later in the shadow.", "shape", "when")
TWIN_BUSY = _twin("utilization", "share", "Processors that run jobs, of all, really and in the shadow.", "of")
TWIN_WAITING = _twin("longest_waiting_seconds", "seconds", "How long the longest waiting job has waited.", "of")
TWIN_EVIDENCE = _twin("evidence", "1", "Evidence that waits differ; from 20 on the difference is real.")

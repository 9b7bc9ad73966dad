"""One table of colours for Grafana, report, live page and plots. All are legible on white and on black.

A thing has one colour on all screens. Red and green only say bad and good.
"""

POLICY_COLOURS = {
    "easy": "#186cea",
    "best": "#c02688",
    "fcfs": "#5e6c5e",
    "conservative": "#7a7aea",
    "wfp": "#969626",
    "lwf": "#7a50c0",
    "easy-sjbf": "#a47a88",
    "probabilistic": "#346c96",
    "all-reserve": "#b27adc",
    "tuned": "#a45018",
    "guarded": "#ea5ec0",
    "slurm": "#88967a",
    "cautious": "#2696b2",
}
"""Colours by the name of a policy or of a configuration. A SPEC with keys has the colour of its policy."""

OTHER_COLOURS = ("#7a6c96", "#dc6c96", "#6c7a18", "#966c18", "#1896ea", "#96507a", "#b250c0")
"""Colours of other series, in order of appearance."""

GOOD, WARNING, BAD = "#2f9e5f", "#c8701a", "#d0384e"
"""Colours for good values, for values to look at, and for values to act on."""

NEUTRAL = "#7d8590"
"""Colour for neutral things: limits, targets, bands, real outcomes."""

HUES = ("#2890e0", "#969626", "#8850b2", "#347a7a", "#dc5ec0", "#a45018", "#345edc", "#b28888")
"""Colours of stages, groupings, reasons and other series that are neither good nor bad."""

STAGE_COLOURS = dict(
    zip(("runtime_distribution", "walltime_adjustment", "wait_bound", "scheduler", "scoreboard"), HUES, strict=False)
)
"""Colours by the name of a stage."""

GROUPING_COLOURS = dict(
    zip(("ensemble", "conformal", "futures", "plain", "static", "nodes", "rtime", "rnprod"), HUES, strict=True)
)
"""Colours by the name of a grouping of bounds on waits."""

REASON_COLOURS = dict(
    zip(("fits-now", "backfilled", "probably-harmless", "reserved", "speculated"), HUES, strict=False)
)
"""Colours by the reason of a decision."""

WAITING_COLOURS = {
    "too few processors free": HUES[0],
    "fits, others go first": HUES[1],
    "too little memory free": HUES[2],
    "too few GPUs free": HUES[3],
    "blocked by the site": NEUTRAL,
    "larger than the machine is now": BAD,
}
"""Colours by the reason for which a job waits."""

OUTCOME_COLOURS = {"over": GOOD, "under": WARNING, "bad": BAD, "none": NEUTRAL}
"""Colours by the outcome of an adjusted request, see `AdjustmentClass`."""

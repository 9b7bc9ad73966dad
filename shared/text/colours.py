"""One colour for each policy, the same in Grafana and in the report, and legible on white and on black."""

POLICY_COLOURS = {
    "easy": "#3f83c8",
    "best": "#2f9e5f",
    "fcfs": "#8b929c",
    "conservative": "#8e62c9",
    "wfp": "#c8701a",
    "lwf": "#a5850a",
    "easy-sjbf": "#1c9aa0",
    "probabilistic": "#d0506f",
    "all-reserve": "#8d6748",
}
"""Colours by the name of a policy or of a configuration."""

OTHER_COLOURS = ("#5566d6", "#7f9b1e", "#c757a8", "#4d8c7a", "#b0563a", "#6d7f99", "#9a4fd0")
"""Colours of other series, in order of appearance."""

GOOD, WARNING, BAD = "#2f9e5f", "#c8701a", "#d0384e"
"""Colours for good values, for values to look at, and for values to act on."""

NEUTRAL = "#7d8590"
"""Colour for neutral things: limits, targets, bands."""

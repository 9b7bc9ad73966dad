"""Events, reasons and explanations in words; colours and columns."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.text.colours import (
        BAD,
        GOOD,
        GROUPING_COLOURS,
        HUES,
        NEUTRAL,
        OTHER_COLOURS,
        OUTCOME_COLOURS,
        POLICY_COLOURS,
        REASON_COLOURS,
        STAGE_COLOURS,
        WAITING_COLOURS,
        WARNING,
    )
    from shadowtime.shared.text.columns import NOTHING, Measure, TableColumn, Values, numbers, seconds, shares, times
    from shadowtime.shared.text.events import ADJUSTED, ENDS, LEFT, YOUNG, Sentence, chosen, sentences
    from shadowtime.shared.text.explanations import (
        NamesJob,
        brief_of,
        describe_start,
        reasons_of,
        sentences_of,
        start_in,
        start_range,
    )
    from shadowtime.shared.text.reasons import REASON_NAMES, UNKNOWN, RunContext, describe_reason, procs
    from shadowtime.shared.text.wait_ranges import HEADINGS, range_rows

__getattr__ = lazy_exports(__name__)

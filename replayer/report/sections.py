"""Two sections of the report: portfolios, with their changes and standings, and the site's expected starts."""

from collections.abc import Mapping, Sequence
from typing import Any

from shadowtime.replayer.presentation import expectations_of
from shadowtime.replayer.report.markup import cell, escape, table
from shadowtime.shared.formatting import clock, counted, duration, percent, signed_duration

MOST = 10
"""Maximum number of rows in a table."""

Row = Mapping[str, Any]


def who_decided(rows: Sequence[Row], unix_start: int = 0) -> str:
    """Return the tables of each policy that switches between several configurations, called its members.

    Parameters
    ----------
    rows
        Rows under `policies` in the `--json` document.
    unix_start
        Unix time of second 0 of the log; 0 if unknown.
    """
    return "".join(
        _changes(row["policy"], row["portfolio"], unix_start) + _standings(row["policy"], row["portfolio"])
        for row in rows
        if "portfolio" in row
    )


def _changes(policy: str, portfolio: Row, unix_start: int) -> str:
    changes = portfolio["changes"]
    ends = [*(switch["time"] for switch in changes[1:]), None]
    body = [
        [
            cell(change["time"], clock(change["time"], unix_start)),
            escape(change["member"]),
            "to the end" if end is None else cell(end - change["time"], duration(end - change["time"])),
        ]
        for change, end in zip(changes, ends, strict=True)
    ][-MOST:]
    count = len(changes) + portfolio["left_out"]
    note = f"{policy} had {counted(count, 'turn')} of its members" + (
        f"; the first {len(changes):,} are known" if portfolio["left_out"] else ""
    )
    if portfolio["left_out"]:  # the end of the last known change is unknown
        body[-1][-1] = "-"
    note += f"; here are the last {MOST} of these." if len(changes) > MOST else "."
    return table(["from", "decided", "for"], body, f"Who decided, {policy}", note)


def _standings(policy: str, portfolio: Row) -> str:
    if not portfolio["members"]:
        return ""
    ahead = sorted(portfolio["members"], key=lambda member: member["loss"])[:MOST]
    if all(member["member"] != portfolio["decides"] for member in ahead):
        ahead[-1] = next(member for member in portfolio["members"] if member["member"] == portfolio["decides"])
    body = [
        [
            escape(member["member"]) + (" (decides)" if member["member"] == portfolio["decides"] else ""),
            *(cell(member[key], percent(member[key])) for key in ("slowdown", "wait", "longest_wait", "worst_user")),
            cell(member["loss"], f"{member['loss']:.3f}"),
            cell(member["weight"], percent(member["weight"])),
        ]
        for member in ahead
    ]
    left = len(portfolio["members"]) - len(ahead)
    note = (
        "Mean bounded slowdown, mean wait and longest wait are shares of those of EASY, of the "
        f"{portfolio['jobs']:,} jobs that have ended on all simulated machines; so is the mean wait of the worst user. "
        "The member with the least loss decides."
        + (f" {left:,} members with a greater loss are left out." if left else "")
    )
    return table(
        ["member", "slowdown", "wait", "longest wait", "worst user", "loss", "weight"],
        body,
        f"Standings, {policy}",
        note,
    )


# Starts expected by the site's own scheduler, next to our forecasts and bounds for the same jobs.

CAPTION = (
    "First and last are the first and the last start that the site's own scheduler expected for a waiting job. The "
    "forecast is ours, at its submission. If we forecast only some of these jobs, the site's expectations of them have "
    "separate rows. An error is the expected start minus the real one, so it is positive if the expected start was too "
    "late. Ahead: mean time from the expectation to the start. Held: waits within their bounds; in time: "
    "share of starts by the times of which we state probabilities."
)


def expected_starts(document: Mapping[str, Any]) -> str:
    """Return the table of errors of the site's expected starts and of ours; empty if the site stated none."""
    rows = document.get("expected_starts", [])
    several = len({(row["policy"], row["runtime"]) for row in rows}) > 1
    body = [
        [
            escape(f"{row['policy']}, run times: {row['runtime']}, " if several else "")
            + escape(f"{'all jobs' if row['queue'] == 'all' else 'queue ' + str(row['queue'])}: {expectation.source}"),
            f"{expectation.jobs:,}",
            *(_time(expectation.scores.get(key)) for key in ("mean_absolute_error", "median_absolute_error")),
            _time(expectation.scores.get("mean_error"), signed=True),
            _share(expectation.scores.get("late_share")),
            _time(expectation.scores.get("mean_ahead")),
            _share(expectation.held),
        ]
        for row in rows
        for expectation in expectations_of(row)
    ]
    head = ["source", "jobs", "mean absolute error", "median", "mean error", "too late", "ahead", "held"]
    return table(head, body, "Expected starts, the site's and ours", CAPTION) if body else ""


def _time(seconds: float | None, *, signed: bool = False) -> str:
    shown = signed_duration(seconds) if signed and seconds is not None else duration(seconds)
    return cell(seconds, shown)


def _share(value: float | None) -> str:
    return cell(value, "-" if value is None else percent(value))

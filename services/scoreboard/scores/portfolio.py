"""Record of a portfolio policy: the deciding member over time, and the standings at the last choice."""

from typing import Any

from shadowtime.shared.bounds import MAX_MEMBER_CHANGES
from shadowtime.shared.messages import Decided, MemberChange, PortfolioScores, Standing


class MemberRecord:
    """The record of a portfolio's members; empty for a policy with one configuration.

    >>> from shadowtime.shared.messages.decisions import Chosen
    >>> members = MemberRecord()
    >>> for time, name in ((0, "easy"), (60, "easy"), (90, "wfp3 60 h")):
    ...     members.decide(Decided(time=time, chosen=Chosen(member=name)))
    >>> [(value.time, value.member) for value in members.changes], members.decides
    ([(0, 'easy'), (90, 'wfp3 60 h')], 'wfp3 60 h')
    """

    def __init__(self) -> None:
        self.decides: str | None = None
        self.changes: list[MemberChange] = []
        self.left_out = 0
        self.jobs: int | None = None
        self.standings: tuple[Standing, ...] = ()

    def decide(self, decided: Decided) -> None:
        """Record the member that decided. Changes after the first `MAX_MEMBER_CHANGES` are only counted."""
        if (chosen := decided.chosen) is None:
            return
        if chosen.member != self.decides:
            self.decides = chosen.member
            if len(self.changes) < MAX_MEMBER_CHANGES:
                self.changes.append(MemberChange(time=decided.time, member=chosen.member))
            else:
                self.left_out += 1

        if chosen.standings is not None:
            self.jobs, self.standings = chosen.jobs, chosen.standings

    def scores(self) -> PortfolioScores | None:
        """Return the scores of the portfolio. Return None if no member was ever chosen."""
        if self.decides is None:
            return None
        return PortfolioScores(
            decides=self.decides,
            jobs=self.jobs,
            members=self.standings,
            changes=tuple(self.changes),
            left_out=self.left_out,
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values; an empty one if no member was ever chosen."""
        scores = self.scores()
        return {} if scores is None else {"portfolio": scores.model_dump()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned. `state` may have other keys, too."""
        if (scores := state.get("portfolio")) is None:
            self.__dict__.update(MemberRecord().__dict__)
            return
        scores = PortfolioScores.model_validate(scores)
        self.decides, self.jobs, self.standings = scores.decides, scores.jobs, scores.members
        self.changes, self.left_out = list(scores.changes), scores.left_out

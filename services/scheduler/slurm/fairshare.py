"""Fair-share as Slurm counts it: usage that decays, over a tree of accounts.

References: docs/algorithms.md#slurm (Slurm 22.05, `src/plugins/priority/multifactor`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shadowtime.services.scheduler.kernels import charge_periods
from shadowtime.services.scheduler.work_limits import CHARGES

LN2 = 0.693
"""Natural logarithm of 2, rounded as in Slurm."""

ROOT = 0
"""Number of the account above all others."""

NOBODY = -1
"""Number of an unknown user, account, partition or QOS."""

Owner = tuple[int, int]
"""User and account."""


@dataclass(slots=True)
class _Account:
    parent: int
    shares: int
    users: int
    usage: float = 0.0
    children: list[int] = field(default_factory=list)
    members: list[int] = field(default_factory=list)


class Shares:
    """Shares of users and accounts in the machine, and their recent usage.

    Usage is in processor seconds, for users and for all accounts above them. A user who has not joined is only counted
    in the account's number of users. A user of an unknown account joins with one share, in a new account with one share
    below the root.

    Parameters
    ----------
    accounts
        Number, parent, shares and number of users of each account.
    users
        User, account, shares and initial usage of each user, except users with one share and no usage.
    half_life
        Half-life of usage in seconds; with 0 usage never decays.
    classic
        Whether factors use the formula from before Fair Tree.
    damping
        Divisor of the exponent in the classic formula.

    >>> shares = Shares([(1, 0, 60, 1), (2, 0, 40, 1)], [(7, 1, 1, 100.0), (8, 2, 1, 300.0)], half_life=0)
    >>> shares.factors()
    {(7, 1): 1.0, (8, 2): 0.5}
    """

    def __init__(
        self,
        accounts: list[tuple[int, int, int, int]],
        users: list[tuple[int, int, int, float]],
        half_life: int = 604_800,
        *,
        classic: bool = False,
        damping: int = 1,
    ) -> None:
        self._decay = 1 - LN2 / half_life if half_life else 1.0
        self._classic, self._damping = classic, damping
        self._accounts = {ROOT: _Account(ROOT, 1, 0)}
        self._users: dict[Owner, list[float]] = {}
        """Shares and usage of each user who has joined."""
        for number, parent, share, count in accounts:
            if number == ROOT:
                self._accounts[ROOT].users = count
            else:
                self._accounts[number] = _Account(parent, share, count)

        for number, account in self._accounts.items():
            if number != ROOT:
                self._accounts[account.parent].children.append(number)
        for user, of, share, usage in users:
            self._join((user, of), share)
            self.charge((user, of), usage)

    def _join(self, owner: Owner, shares: int = 1) -> None:
        user, number = owner
        if (account := self._accounts.get(number)) is None:
            account = self._accounts[number] = _Account(ROOT, 1, 0)
            self._accounts[ROOT].children.append(number)
        account.members.append(user)
        account.users = max(account.users, len(account.members))
        self._users[owner] = [shares, 0.0]

    def join(self, owner: Owner) -> None:
        """Add a user to an account, if they have not joined it."""
        if owner not in self._users:
            self._join(owner)

    def charge(self, owner: Owner, seconds: float) -> None:
        """Add processor seconds to the usage of a user and of all accounts above."""
        self._users[owner][1] += seconds
        number = owner[1]
        while True:
            account = self._accounts[number]
            account.usage += seconds
            if number == ROOT:
                return
            number = account.parent

    def used(self, seconds: int) -> float:
        """Return the decay factor for the usage of a span of `seconds` that is charged at the end of the span."""
        return float(self._decay**seconds)

    def decay(self, seconds: int) -> None:
        """Decay all usage over some seconds."""
        factor = self._decay**seconds
        for account in self._accounts.values():
            account.usage *= factor
        for user in self._users.values():
            user[1] *= factor

    def charge_periods(self, periods: int, seconds: int, charges: Sequence[tuple[Owner, float]]) -> int:
        """Apply `decay`, then a `charge` of each job, for some periods. O(periods * (jobs * depth + accounts)).

        Parameters
        ----------
        seconds
            The length of a period.
        charges
            The owner of each running job, and the usage of the job per second.

        Returns
        -------
        int
            The number of periods that were applied: all, or as many as take at most `CHARGES` additions.
        """
        homes = {number: place for place, number in enumerate(self._accounts)}
        places = {owner: place for place, owner in enumerate(self._users)}
        factor = self._decay**seconds
        accounts = np.array([account.usage for account in self._accounts.values()])
        users = np.array([usage for _, usage in self._users.values()])
        depths = self._depths()
        additions = sum(depths[owner[1]] for owner, _ in charges) + len(accounts) + len(users)
        periods = min(periods, CHARGES // additions)
        charge_periods(
            periods,
            factor,
            accounts,
            np.array([homes[account.parent] for account in self._accounts.values()]),
            users,
            np.array([places[owner] for owner, _ in charges], dtype=np.int64),
            np.array([homes[owner[1]] for owner, _ in charges], dtype=np.int64),
            np.array([seconds * self.used(seconds) * weight for _, weight in charges], dtype=np.float64),
        )
        for account, usage in zip(self._accounts.values(), accounts.tolist(), strict=True):
            account.usage = usage
        for user, usage in zip(self._users.values(), users.tolist(), strict=True):
            user[1] = usage
        return periods

    def _depths(self) -> dict[int, int]:
        """Return the number of accounts from each account up to the root, both included. O(accounts)."""
        depths = {ROOT: 1}
        for number in self._accounts:
            chain = []
            above = number
            while above not in depths:
                chain.append(above)
                above = self._accounts[above].parent
            for below in reversed(chain):
                depths[below] = depths[self._accounts[below].parent] + 1

        return depths

    def factors(self) -> dict[Owner, float]:
        """Return the fair-share factor of each user who has joined, from 0 to 1. O(n log n) in users and accounts."""
        if self._classic:
            return dict(self._classic_factors(ROOT, 1.0, 0.0))
        count = sum(account.users for account in self._accounts.values())
        ranks = _Ranks(count)
        self._rank([ROOT], ranks, tied=False)
        return ranks.places

    def _level(self, number: int) -> int:
        """Return the sum of the shares of the users and accounts directly in an account.

        A user who has not joined has one share.
        """
        account = self._accounts[number]
        usage = sum(self._users[user, number][0] for user in account.members)
        children = sum(self._accounts[child].shares for child in account.children)
        return int(usage) + account.users - len(account.members) + children

    def _rank(self, accounts: list[int], ranks: "_Ranks", *, tied: bool) -> None:
        """Rank all users below accounts of equal rank, the largest ratio of shares to usage first.

        If `tied`, the first of them has the rank of the user ranked before.
        """
        below: list[tuple[float, int, int, int]] = []
        for number in accounts:
            account, level = self._accounts[number], self._level(number)
            for user in account.members:
                shares, usage = self._users[user, number]
                below.append((-_ratio(shares, level, usage, account.usage), 0, user, number))
            if idle := account.users - len(account.members):
                below.append((-float("inf"), 0, NOBODY - idle, number))
            for child in account.children:
                of = self._accounts[child]
                below.append((-_ratio(of.shares, level, of.usage, account.usage), 1, child, number))

        below.sort()
        at = 0
        while at < len(below):
            ratio, is_account, number, parent = below[at]
            equal = tied if at == 0 else ratio == below[at - 1][0]
            at += 1
            if not is_account:
                ranks.take((number, parent), equal=equal)
                continue
            group = [number]
            while at < len(below) and below[at][0] == ratio:
                group.append(below[at][2])
                at += 1
            self._rank(group, ranks, tied=equal)

    def _classic_factors(self, number: int, norm: float, effective: float) -> Iterator[tuple[Owner, float]]:
        account, level, whole = self._accounts[number], self._level(number), self._accounts[ROOT].usage

        def of(shares: float, usage: float) -> tuple[float, float]:
            part = usage / whole if whole else 0.0
            if not level:
                return 0.0, part
            own = part if number == ROOT else part + (effective - part) * shares / level
            return norm * shares / level, own

        for user in account.members:
            share, used = of(*self._users[user, number])
            yield (user, number), 2.0 ** (-(used / share) / self._damping) if share else 0.0
        for child in account.children:
            share, used = of(self._accounts[child].shares, self._accounts[child].usage)
            yield from self._classic_factors(child, share, used)

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        return {
            "accounts": [
                [
                    number,
                    account.parent,
                    account.shares,
                    account.users,
                    account.usage,
                    list(account.children),
                    list(account.members),
                ]
                for number, account in self._accounts.items()
            ],
            "users": [[*owner, *user] for owner, user in self._users.items()],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._accounts = {
            number: _Account(parent, shares, users, usage, list(children), list(members))
            for number, parent, shares, users, usage, children, members in state["accounts"]
        }
        self._users = {(user, account): [shares, usage] for user, account, shares, usage in state["users"]}


class _Ranks:
    """Ranks of users, from `count` down to 1. All users of a tie have the rank of the first user of the tie.

    `places` has the ranks divided by `count`.
    """

    def __init__(self, count: int) -> None:
        self._count = self._place = self._next = count
        self.places: dict[Owner, float] = {}

    def take(self, owner: Owner, *, equal: bool) -> None:
        """Give the next rank to a user, or the rank of the user before if they are `equal`.

        A user number n below `NOBODY` stands for `NOBODY` - n users who have not joined.
        """
        if not equal:
            self._place = self._next
        if owner[0] < NOBODY:
            self._next -= NOBODY - owner[0]
            return
        self._next -= 1
        self.places[owner] = self._place / self._count


def _ratio(shares: float, level: int, usage: float, of: float) -> float:
    """Return the ratio of a part of the shares (`shares / level`) to a part of the usage (`usage / of`).

    The ratio is 0 without shares. It is infinity without usage, or if all usage has decayed to a share that is too
    small for a number.
    """
    if not shares:
        return 0.0
    used = usage / of if of else 0.0
    return (shares / level) / used if used else float("inf")

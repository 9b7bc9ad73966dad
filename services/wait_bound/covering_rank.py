"""The binomial distribution, as far as ranks of observations ask for it."""

from shadowtime.shared.kernel import kernel

NEGLIGIBLE = 1e-20
ROUNDING = 1e-12


@kernel
def covering_rank(count: int, quantile: float, confidence: float) -> int:
    """Return one more than the least number that a binomial variable exceeds with at most the doubt that is left.

    Probabilities are told in shares of the likeliest number's, each from the one beside it, to where they are
    negligible; their sum is what they are shares of. As probable as `confidence` is what is so but for rounding: that
    less than half of an odd number of observations lie below the median is so with one half.
    """
    odds = quantile / (1.0 - quantile)
    likeliest = min(int((count + 1) * quantile), count)
    number, share, total = likeliest, 1.0, 1.0
    while number < count and share > NEGLIGIBLE:
        share *= (count - number) / (number + 1.0) * odds
        number += 1
        total += share
    number, share = likeliest, 1.0
    while number > 0 and share > NEGLIGIBLE:
        share *= number / (count - number + 1.0) / odds
        number -= 1
        total += share
    asked, covered = confidence * (1.0 - ROUNDING) * total, share
    while covered < asked and number < count:
        share *= (count - number) / (number + 1.0) * odds
        number += 1
        covered += share
    return number + 1

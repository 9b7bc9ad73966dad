"""Predictors that combine several others: experts, mixtures, boosted trees."""

from shadowtime.services.runtime_distribution.ensembles.boosted import Boosted
from shadowtime.services.runtime_distribution.ensembles.experts import Experts
from shadowtime.services.runtime_distribution.ensembles.mixture import Mixture
from shadowtime.services.runtime_distribution.ensembles.within_bins import (
    AtRequest,
    NearRequest,
    apart_at_request,
    count_near,
    count_reached,
    parts_of,
    quantiles_of,
    spread,
    transformed_within,
)

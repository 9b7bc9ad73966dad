"""Run-time predictions for every job at its submission."""

from shadowtime.services.runtime_distribution.handler import PREDICTORS, RuntimeDistribution
from shadowtime.services.runtime_distribution.history import remembered
from shadowtime.services.runtime_distribution.templates import (
    ELITE,
    ENDED,
    PREDICTED,
    Genes,
    TemplateErrors,
    TemplatesSettings,
    search,
)

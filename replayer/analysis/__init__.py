"""Analyses of a log: schedule differences, accuracy of starts, fits of a site's settings, template search."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.analysis.schedule_difference import first_deviation, starts_of
    from shadowtime.replayer.analysis.slurm_fit import fit, policy_of, require_better
    from shadowtime.replayer.analysis.slurm_site import toml_of, write_site
    from shadowtime.replayer.analysis.start_accuracy import met_by, met_table
    from shadowtime.replayer.analysis.template_search import SearchOptions, searches_of, write_templates

__getattr__ = lazy_exports(__name__)

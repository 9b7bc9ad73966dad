"""Accounting records of Slurm, PBS and job tables, as columns and as job lives."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.accounting import pbs, sacct, table
    from shadowtime.shared.accounting.durations import seconds_of
    from shadowtime.shared.accounting.instants import MAX_UNIX, Instants, whole_number, zone_of
    from shadowtime.shared.accounting.job_numbers import LIFE, TASKS, number_of, tasks_of
    from shadowtime.shared.accounting.lives import Lives, in_order_of_time, joined_sizes, own_numbers, repeated
    from shadowtime.shared.accounting.machine_parts import NONE, MachineParts, gpus_of, parts_of_nodes, read_parts
    from shadowtime.shared.accounting.names import KINDS, Names, read_key, read_names
    from shadowtime.shared.accounting.odd_rows import UNREADABLE, OddRows
    from shadowtime.shared.accounting.pbs_records import PbsJobs, PbsLife, PbsWaiting, numbered
    from shadowtime.shared.accounting.reading import TEXTS, UNKNOWN, AccountingRows, Reading
    from shadowtime.shared.accounting.sacct import GOING_ON, STATES
    from shadowtime.shared.accounting.sacct_values import limit_of, nodes_of, resources_of
    from shadowtime.shared.accounting.table import parse_columns
    from shadowtime.shared.accounting.text_file import beginning_of, contents_of, first_lines, lines_of

__getattr__ = lazy_exports(__name__)

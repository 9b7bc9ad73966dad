"""Columns of the tables of jobs, as `job_table` keeps them."""

NUMBER, SUBMIT, SIZE, REQUESTED, ADJUSTED, PREDICTED, SHORTENED, SLOT, START = range(9)
"""Job number, time of submission, processors, the job's `PlannedTimes`, slot of its histogram, start."""

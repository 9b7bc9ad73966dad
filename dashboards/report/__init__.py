"""The report of a replay: one page of HTML."""

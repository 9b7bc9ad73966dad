"""What was better: the scores of a run."""

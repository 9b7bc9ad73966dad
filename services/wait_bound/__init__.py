"""How long will this job wait at most: a bound with a stated confidence."""

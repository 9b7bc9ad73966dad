"""How long will this job run: a prediction for every job at its submission."""

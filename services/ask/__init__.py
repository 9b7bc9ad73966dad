"""How long would a job wait: questions, and their answers over HTTP."""

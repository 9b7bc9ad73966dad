"""The stages of the pipeline, one folder each; `pipeline.py` is the data flow."""

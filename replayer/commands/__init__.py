"""The sub-commands of `shadowtime` that read, replay and compare logs, one module each."""

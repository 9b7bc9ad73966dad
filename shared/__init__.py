"""Modules that several parts of Shadowtime import: events, protocols, errors."""

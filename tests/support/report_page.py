"""The page of a report, read as a browser reads it."""

import re


def tables(html: str) -> dict[str, dict[str, list[str]]]:
    """Return the rows of each table by its label, each as its exact values, by its first cell."""
    found: dict[str, dict[str, list[str]]] = {}
    for label, table in re.findall(r'aria-label="([^"]*)"><table>(.*?)</table>', html, re.DOTALL):
        rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', table, re.DOTALL)
        found[label] = {name: re.findall(r'<data value="(.*?)">', cells) for name, cells in rows}
    return found

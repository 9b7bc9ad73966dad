"""Texts of a page, as its reader sees them."""


def text(name: str) -> str:
    return f"document.getElementById('{name}').textContent"

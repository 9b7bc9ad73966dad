"""Mends what screen readers cannot use on the pages of the site, as it is built."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make an empty header of a table a plain cell."""
    return html.replace("<th></th>", "<td></td>")


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name the dialog of the search."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )

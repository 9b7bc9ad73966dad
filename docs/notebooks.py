"""Makes a page of each notebook as the site is built: its text, code and the outputs that it was saved with."""

from pathlib import PurePath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add `NAME.md` and its figures beside every `NAME.ipynb`."""
    for file in [page for page in files if page.src_uri.endswith(".ipynb")]:
        page = PurePath(file.src_uri)
        text, made = MarkdownExporter().from_filename(
            str(file.abs_src_path), resources={"unique_key": page.stem, "output_files_dir": f"{page.stem}_files"}
        )
        files.append(File.generated(config, str(page.with_suffix(".md")), content=text))
        for name, content in made["outputs"].items():
            files.append(
                File.generated(config, str(page.with_name(page.stem + "_files") / PurePath(name).name), content=content)
            )

    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to a notebook, which a reader of the repository follows, lead to its page."""
    return markdown.replace(".ipynb)", ".md)")

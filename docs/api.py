"""The pages of the API: every public function and class of a room, from its docstrings.

A page holds a line for each module, which mkdocstrings fills in by reading the source, without
importing it. MkDocs runs this file as a hook (``hooks`` in mkdocs.yml).
"""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SOURCE = Path(__file__).parents[1] / "workflow"
ROOMS = {
    "api": "mamushi_curate",
    **{
        room: f"mamushi.{room}"
        for room in ("data", "lm", "selection", "unlearning", "evaluation", "evidence", "figures")
    },
}
"""What somebody may want to call or read, by the name of its page."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each room to those in the folder."""
    for name, package in ROOMS.items():
        files.append(File.generated(config, f"api/{name}.md", content=page(package)))
    return files


def page(package: str) -> str:
    """Return the page of a package in Markdown: its modules in the order of their names."""
    folder = SOURCE / package.replace(".", "/")
    modules = sorted(folder.glob("*.py"))
    public = [path.stem for path in modules if not path.stem.startswith("_")]
    return "\n\n".join([f"# {package}", *(f"::: {package}.{name}" for name in public)]) + "\n"

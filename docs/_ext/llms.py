"""``llms.txt`` and ``llms-full.txt``: the same pages for programs that read text."""

from pathlib import Path

from sphinx.application import Sphinx

SUMMARY = """# gnn-vpa

> Variance-preserving aggregation for graph neural networks: add up the messages of a node's N
> neighbours and divide by sqrt(N). A Python library for PyTorch Geometric and a command line.
"""


def _order(app: Sphinx, name: str = "index") -> list[str]:
    found = [name]
    for child in app.env.toctree_includes.get(name, []):
        found += [page for page in _order(app, child) if page not in found]
    return found


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    root = Path(app.srcdir)
    short, full = SUMMARY + "\n## Pages\n\n", SUMMARY
    for name in dict.fromkeys(_order(app)):
        title = app.env.titles[name].astext()
        short += f"- [{title}]({name}.html)\n"
        path = Path(app.env.doc2path(name))
        if path.suffix == ".md":
            full += f"\n\n<!-- {path.relative_to(root).as_posix()} -->\n\n{path.read_text('utf-8')}"
    (Path(app.outdir) / "llms.txt").write_text(short, encoding="utf-8")
    (Path(app.outdir) / "llms-full.txt").write_text(full, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write both when the site is built."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

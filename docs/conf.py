"""How Sphinx builds the site: `make docs`. Nothing here needs a network."""

import os
import sys
import warnings
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS / "_ext"), str(ROOT / "src")]
os.environ.setdefault("GNN_VPA_WORKERS", "1")  # tutorials are small: a second process costs more
warnings.filterwarnings("ignore", message=r".*torch\.jit.* is deprecated")

import generate  # noqa: E402
import inventories  # noqa: E402

import gnn_vpa  # noqa: E402

# `-t quick`, for the tests: tutorials are not run.
QUICK = "quick" in tags  # noqa: F821  (Sphinx gives it)

# Pages that are made from the code and from records, before Sphinx looks at the folder.
generate.write_all(DOCS)

project = "gnn-vpa"
author = "The gnn-vpa maintainers"
copyright = f"2026, {author}"
version = release = gnn_vpa.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "access",
    "docstrings",
    "links",
    "llms",
    "mathml",
    "wide_tables",
]
exclude_patterns = ["_build", "_ext", "_generated/scripts", "playground", "tutorials"]
templates_path = ["_templates"]
nitpicky = True
default_role = "code-or-name"  # of docstrings; in Markdown backticks are code anyway

# Markdown, as a forge shows it -------------------------------------------------------------------
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
smartquotes = False
suppress_warnings = [
    "config.cache",  # functions in the settings of the gallery
    "ref.python",  # two rooms have a class of one name, and an annotation does not say whose
]

# The reference -----------------------------------------------------------------------------------
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
add_module_names = False
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
intersphinx_mapping = inventories.mapping(DOCS / "inventories", DOCS / "_generated" / "inventories")
nitpick_ignore_regex = [
    # Types of annotations that are no part of the public surface, or have no page anywhere.
    (r"py:.*", r"(.*\.)?_\w.*"),
    (r"py:class", r"gnn_vpa\.\w+\.\w+\.\w+|gnn_vpa\.host\.Host"),
    (r"py:class", r"DataSets|Models|Number|Sizes|Values|torch_geometric\.typing\.SparseTensor"),
]

# Tutorials ---------------------------------------------------------------------------------------
sphinx_gallery_conf = {
    "plot_gallery": not QUICK,
    "examples_dirs": [generate.copy_tutorials(DOCS)],
    "gallery_dirs": ["_generated/tutorials"],
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 5,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "image_scrapers": ("matplotlib", "pictures.scrape"),
    "reset_modules": ("matplotlib", "tutorial_setup.reset"),
    "reset_modules_order": "both",
    "capture_repr": ("_repr_html_", "__repr__"),
    "matplotlib_animations": False,
    "nested_sections": False,
    "write_computation_times": False,
    "thumbnail_size": (400, 280),
}

# The look ----------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = f"gnn-vpa {release}"
html_static_path = ["_static"]
# The playground is a page of its own, with its script.
html_extra_path = [name for name in ["playground"] if (DOCS / name).exists()]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "ten-minutes": [], "theory": []}
html_theme_options = {
    "logo": {"text": "gnn-vpa", "image_light": "_static/favicon.svg",
             "image_dark": "_static/favicon.svg", "alt_text": "gnn-vpa, to the home page"},
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}  # fmt: skip
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

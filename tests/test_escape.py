"""Any text is shown as it is and means nothing: to Markdown, LaTeX, a spreadsheet, a page."""

import csv
import io
import re
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gnn_vpa.escape import csv_cell, csv_text, figure_text, html, latex, markdown, plain, printable

# Letters are no trouble; what is special anywhere is drawn more often than by chance.
SPECIAL = "\\`*_[]<>|~&$#%{}^=+-@!.)(\"':/ \t\n\r\x00\x07\x1b\x7f\x9b\u2028\u202e\ufeff\ud800"
NAMES = st.text(st.one_of(st.sampled_from(SPECIAL), st.characters()), max_size=30)
untimed = settings(deadline=None)
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def words(text: str) -> list[str]:
    """What a reader sees, however wide the gaps are."""
    return text.split()


@untimed
@given(NAMES)
@example("\x1b[31mred\x1b[0m")
@example("two\r\nlines\tand a tab")
def test_plain_text_is_one_line_without_control_characters(name: str) -> None:
    line = plain(name)
    assert len(line.splitlines()) <= 1
    assert not {"Cc", "Cs", "Zl", "Zp"} & {unicodedata.category(character) for character in line}
    assert plain(line) == line
    line.encode("utf-8")


@untimed
@given(NAMES)
def test_printable_text_keeps_its_lines_and_nothing_that_a_terminal_obeys(name: str) -> None:
    kept = printable(name)
    control = {c for c in kept if unicodedata.category(c) in ("Cc", "Cs")}
    assert control <= {"\n", "\t"}
    assert words(kept) == words(plain(name))


def test_ordinary_names_stay_as_they_are() -> None:
    for name in ("IMDB-BINARY", "MUTAG", "GIN+vpa", "Größe 2.5 (klein)", "数据"):
        assert plain(name) == printable(name) == markdown(name) == html(name) == csv_cell(name)
        assert latex(name) == name


@untimed
@given(NAMES)
@example("# heading")
@example("12. a list")
@example("- [x](y) ![z](w)")
@example("<script>alert(1)</script>")
@example("a\\|b\\")
@example("&lt;`code`")
@example("    code")
def test_markdown_shows_the_name_in_a_cell_in_a_list_and_by_itself(name: str) -> None:
    written = markdown(name)
    page = MARKDOWN.render(f"| a | {written} | c |\n|---|---|---|\n| {written} | 2 | 3 |\n")
    cells = re.findall(r"<t[hd]>(.*?)</t[hd]>", page, re.DOTALL)
    assert len(cells) == 6
    assert words(_text(cells[1])) == words(_text(cells[3])) == words(plain(name))
    for around in ("- {}", "{}", "## {}", "![{}](img.svg)"):
        tags = {tag for tag, _ in _Elements(MARKDOWN.render(around.format(written))).found}
        assert tags <= {"ul", "li", "p", "h2", "img"}, around


@untimed
@given(NAMES)
def test_markdown_of_one_line_says_what_the_name_says(name: str) -> None:
    assert words(_text(MARKDOWN.render(f"On {markdown(name)}."))) == words(
        f"On {plain(name).strip()}."
    )


@untimed
@given(NAMES)
@example("\\end{tabular}")
@example("100% & _more_ #1 $x$ {~^}")
@example("[5pt]")
def test_latex_has_no_special_character_left_and_closes_what_it_opens(name: str) -> None:
    written = latex(name)
    # What the escapes are made of, taken away, leaves nothing that TeX would act on.
    commands = r"\\text(?:backslash|ascii(?:tilde|circum)|less|greater|bar)\{\}|\\`\{\}|\\[&%$#_{}]"
    rest = re.sub(rf"{commands}|\$\\pm\$|\$-\$|\{{[\[\]]\}}", "", written)
    assert not set(rest) & set("\\&%$#_{}~^[]")
    assert "\n" not in written


@untimed
@given(NAMES)
@example("=cmd|' /C calc'!A0")
@example("-2+3")
@example("@SUM(1)")
@example("'=1")
@example(" =1")
def test_csv_gives_the_name_back_and_no_cell_begins_as_a_formula(name: str) -> None:
    file = io.StringIO()
    csv.writer(file).writerow([csv_cell(name), "2"])
    ((cell, two),) = csv.reader(io.StringIO(file.getvalue()))
    assert two == "2"
    assert not cell.lstrip().startswith(("=", "+", "-", "@"))
    assert csv_text(cell) == plain(name)


@untimed
@given(NAMES, NAMES)
def test_csv_keeps_different_names_apart(one: str, other: str) -> None:
    assert (csv_cell(one) == csv_cell(other)) == (plain(one) == plain(other))


@untimed
@given(NAMES)
@example('"><script>')
def test_html_shows_the_name_as_text_and_as_an_attribute(name: str) -> None:
    page = _Elements(f'<p title="{html(name)}">{html(name)}</p>')
    assert page.found == [("p", {"title": plain(name)})]
    assert page.text == plain(name)


@pytest.mark.parametrize("name", ["a$b$", "$\\frac{$", "$", "\\$x$"])
def test_a_figure_shows_dollars(name: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    figure.suptitle(figure_text(name))
    figure.savefig(io.BytesIO(), format="svg")


class _Elements(HTMLParser):
    """The elements of a piece of HTML and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def _text(page: str) -> str:
    return _Elements(page).text

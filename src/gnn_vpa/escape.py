"""Text from outside, such as a data set's name, in what is written for people and programs.

Every kind of file has characters that mean something there. What is written goes through the
function for its kind, so that a name is shown as it is and is never taken for a command.
"""

import re
from html import escape as _escape

_LINE_ENDS = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
# Control characters (a terminal obeys them), those that turn the direction of writing, halves of
# characters (no file can hold them), and what XML forbids.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    r"\ufeff\ufffe\uffff\ud800-\udfff]"
)
_MARKDOWN = re.compile(r"[\\`*_\[\]<>|~&$]")
_MARKDOWN_BLOCK = re.compile(r"^(\d*)([#+=.)-])")  # a heading or a list, where a line begins so
_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\`{}",
        "[": "{[}",  # behind a line's end it would open an argument
        "]": "{]}",
        "±": r"$\pm$",
        "\N{MINUS SIGN}": "$-$",
        "\N{EN DASH}": "--",
    }
)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_FORMULA = re.compile(r"'*\s*[=+\-@]")


def printable(text: str) -> str:
    r"""Drop control characters, and keep the lines: text for a terminal.

    Example:
        >>> printable("\x1b[31mred\x1b[0m\nnext")
        '[31mred[0m\nnext'
    """
    return _CONTROL.sub("", _LINE_ENDS.sub("\n", text))


def plain(text: str) -> str:
    r"""Return the text as one line without control characters.

    Example:
        >>> plain("two\nlines\x07")
        'two lines'
    """
    return printable(text).replace("\n", " ").replace("\t", " ")


def markdown(text: str) -> str:
    r"""Return the text for a line or a table's cell of Markdown.

    Example:
        >>> print(markdown("a|b <script> `x`"))
        a\|b \<script\> \`x\`
    """
    escaped = _MARKDOWN.sub(r"\\\g<0>", plain(text).strip())
    return _MARKDOWN_BLOCK.sub(r"\1\\\2", escaped)


def latex(text: str) -> str:
    r"""Return the text for LaTeX.

    Example:
        >>> print(latex("50%_of {x} ± 1"))
        50\%\_of \{x\} $\pm$ 1
    """
    return plain(text).translate(_LATEX)


def html(text: str) -> str:
    """Return the text for HTML and SVG, an attribute's value as well.

    Example:
        >>> html('<a href="x">')
        '&lt;a href=&quot;x&quot;&gt;'
    """
    return _escape(plain(text))


def csv_cell(text: str) -> str:
    """Return the text for a cell of CSV that no spreadsheet takes for a formula.

    Text that begins as a formula does and is no number gets an apostrophe in front, the sign for
    text in a spreadsheet. `csv_text` takes it away.

    Example:
        >>> csv_cell("=1+1"), csv_cell("MUTAG"), csv_cell("+1")
        ("'=1+1", 'MUTAG', '+1')
    """
    text = plain(text)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def csv_text(cell: str) -> str:
    """Return the text that `csv_cell` made a cell of.

    Example:
        >>> csv_text("'=1+1"), csv_text("MUTAG")
        ('=1+1', 'MUTAG')
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def figure_text(text: str) -> str:
    r"""Return the text for a figure of Matplotlib, which sets what is between dollars as a formula.

    Example:
        >>> print(figure_text("a$b$"))
        a\$b\$
    """
    return plain(text).replace("$", r"\$")

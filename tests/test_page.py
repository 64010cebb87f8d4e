"""The shell of all pages."""

from xml.etree import ElementTree

import pytest
from jinja2 import UndefinedError
from matplotlib.figure import Figure

from gnn_vpa.page import environment, inline_svg

PAGE = '{% extends "shell.html" %}{% block main %}{{ text }}{% endblock %}'


def test_a_page_asks_nothing_of_a_network_and_escapes_what_it_is_given() -> None:
    page = environment("gnn_vpa").from_string(PAGE).render(text="<script>alert(1)</script>")
    assert page.startswith("<!DOCTYPE html>")
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_what_nobody_gave_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="text"):
        environment("gnn_vpa").from_string(PAGE).render()


def test_a_figure_has_no_black_of_its_own() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.set(xlabel="layer", ylabel="variance", title="Variance")
    axes.scatter([1], [1], color="#000000")
    svg = ElementTree.fromstring(inline_svg(figure))
    assert svg.attrib["fill"] == "currentColor"
    assert "#000000" not in ElementTree.tostring(svg, "unicode")


def test_a_number_and_its_percent_sign_are_in_one_line() -> None:
    page = environment("gnn_vpa").from_string(PAGE).render(text="a 95 % interval")
    assert "a 95\N{NO-BREAK SPACE}% interval" in page


def test_a_percent_sign_of_a_text_stays_as_it_is() -> None:
    texts = ['awk "NR %2"', "x %s % y", "a/ %20b", "100  %"]
    page = environment("gnn_vpa").from_string("{{ text | safe }}")
    assert [page.render(text=text) for text in texts] == texts
    assert environment("gnn_vpa").from_string("{{ text }}").render(text="x %s % y") == "x %s % y"

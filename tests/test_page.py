"""The shell of all pages."""

import pytest
from jinja2 import UndefinedError

from gnn_vpa.page import environment

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

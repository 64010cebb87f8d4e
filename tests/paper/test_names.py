import pytest

from gnn_vpa.errors import UsageError
from gnn_vpa.paper import (
    archive_content,
    archive_names,
    archive_with,
    nearest_names,
    paper_name,
    resolve_name,
)


@pytest.mark.parametrize(
    ("typed", "archive"),
    [
        ("IMDB-B", "IMDB-BINARY"),
        ("imdb-m", "IMDB-MULTI"),
        ("rdt-b", "REDDIT-BINARY"),
        ("RDT-M5K", "REDDIT-MULTI-5K"),
        ("ptc", "PTC_FM"),
        ("ptc-mr", "PTC_MR"),
        ("Mutag", "MUTAG"),
    ],
)
def test_names_of_the_paper_and_of_the_archives(typed: str, archive: str) -> None:
    assert resolve_name(typed) == archive


def test_every_archive_resolves_to_itself_and_from_its_paper_name() -> None:
    for archive in archive_names():
        assert resolve_name(archive) == archive
        assert resolve_name(paper_name(archive) or archive) == archive


def test_nine_sets_have_a_name_in_the_paper() -> None:
    assert sum(paper_name(archive) is not None for archive in archive_names()) == 9


def test_an_unknown_name_brings_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"'PROTEIN'.*PROTEINS"):
        resolve_name("PROTEIN")


def test_without_a_near_one_all_are_named() -> None:
    advice = nearest_names("zzzzzzzz")
    assert all(archive in advice for archive in archive_names())


def test_archives_found_elsewhere_are_known_too() -> None:
    assert resolve_name("enzymes", also=["ENZYMES"]) == "ENZYMES"
    with pytest.raises(UsageError, match=r"ENZYMES"):
        resolve_name("enzyme", also=["ENZYMES"])


def test_contents_tell_the_archives_apart() -> None:
    contents = {archive: archive_content(archive) for archive in archive_names()}
    assert {archive_with(content): content for content in contents.values() if content} == contents
    assert archive_with("") is None


def test_the_fair_comparisons_sets_are_known_without_their_archives() -> None:
    assert [resolve_name(name) for name in ("proteins-full", "Enzymes")] == [
        "PROTEINS_full",
        "ENZYMES",
    ]

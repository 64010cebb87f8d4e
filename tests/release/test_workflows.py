"""What a forge runs is what `make` runs, with the versions that are promised."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="an sdist has no workflows")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def recipe(target: str) -> list[str]:
    """Return the commands of a target of the Makefile."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)
    assert found is not None, f"the Makefile has no target {target}"
    return [line.strip() for line in found[1].splitlines()]


def commands(workflow: Any) -> list[str]:
    """Return what the steps of a workflow run."""
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [step["run"] for step in steps if "run" in step]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_whole_and_asks_for_no_more_than_it_needs(path: Path) -> None:
    workflow = read(path)
    assert workflow["name"] == path.stem
    assert workflow[True], "what starts it (YAML reads the key `on` as true)"
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 60, f"{name} may run for hours"
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            assert "@" in step.get("uses", "@"), f"{step['uses']} has no version"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_makes_targets_that_exist(path: Path) -> None:
    targets = re.findall(r"\bmake ([a-z-]+)", "\n".join(commands(read(path))))
    assert targets
    for target in targets:
        assert recipe(target)


def test_every_promised_python_is_tested() -> None:
    tested = read(ROOT / ".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    promised = [
        name.rsplit(" ", 1)[1]
        for name in PROJECT["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", name)
    ]
    assert tested["python"] == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"


def test_a_release_is_checked_with_its_tag_and_trusted_without_a_password() -> None:
    workflow = read(ROOT / ".github/workflows/release.yml")
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    assert "make release-check" in commands(workflow)[0]
    assert "--tag '$GITHUB_REF_NAME'" in commands(workflow)[0]
    publish = workflow["jobs"]["publish"]
    assert publish["needs"] == "build"
    assert publish["permissions"]["id-token"] == "write"
    text = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    assert "secrets." not in text


def test_hooks_run_the_commands_of_make_check() -> None:
    (local,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local", "a hook that is downloaded needs a network"
    assert [hook["entry"] for hook in local["hooks"]] == [
        command.replace("$(BIN)", ".venv/bin") for command in recipe("check")
    ]
    for hook in local["hooks"]:
        assert hook["language"] == "system"
        assert not hook["pass_filenames"], "the checks look at all files, as make does"
        assert hook["always_run"]


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")))
def test_a_form_for_issues_can_be_read(path: Path) -> None:
    form = read(path)
    if path.stem != "config":
        assert {"name", "description", "body"} <= set(form)
        assert any(part.get("validations", {}).get("required") for part in form["body"])


# The lowest versions ------------------------------------------------------------------------------


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text("utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(package): version for package, version in pairs}


def test_the_lowest_versions_are_those_that_the_package_allows() -> None:
    lowest, newest = pins("constraints-lowest.txt"), pins("constraints.txt")
    for text in PROJECT["dependencies"]:
        requirement = Requirement(text)
        (bound,) = requirement.specifier
        assert bound.operator == ">=", f"{text} has a lower bound and nothing else"
        name = canonicalize_name(requirement.name)
        if name == "torch":  # of the lowest there are only builds for CUDA
            assert lowest[name] == newest[name]
        else:
            assert Version(lowest[name]) == Version(bound.version), text


def test_the_tools_of_the_tests_are_the_same_with_the_lowest_versions() -> None:
    lowest, newest = pins("constraints-lowest.txt"), pins("constraints.txt")
    for tool in ("hypothesis", "pytest", "coverage", "pytest-xdist", "pyyaml"):
        assert lowest[tool] == newest[tool]


def test_what_the_lowest_versions_are_tested_with_exists() -> None:
    paths = re.findall(r"tests/\S+", " ".join(recipe("test-lowest")))
    assert len(paths) > 10
    for path in paths:
        assert (ROOT / path).exists(), f"make test-lowest runs {path}, which is not there"

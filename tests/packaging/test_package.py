"""The wheel and the sdist: what is in them, and that the installed package works outside its repository."""

import sys
import tomllib

import pytest
from contents import faults, metadata, package_files, sdist_files, unpack, wheel_files
from environments import ROOT, Environment, build, command, copy_sources
from promises import DOORS
from works import round_trip

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Read at run time: no import would miss them.
DATA = {
    "air_recsys/py.typed",
    "air_recsys/data/sets/registry.toml",
    "air_recsys/report/assets/explorer.html",
    "air_recsys/report/assets/explorer.js",
    "air_recsys/report/assets/explorer.css",
    "air_recsys/report/assets/force-graph.min.js",
    "air_recsys/report/assets/force-graph.LICENSES.txt",
    "air_recsys/serving/assets/page.html",
    "air_recsys/serving/assets/page.css",
    "air_recsys/serving/assets/page.js",
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return copy_sources(tmp_path_factory.mktemp("package") / "sources")


@pytest.fixture(scope="module")
def wheel(sources):
    return build(sources, "wheel", sources.parent / "wheel")


@pytest.fixture(scope="module")
def sdist(sources):
    return build(sources, "sdist", sources.parent / "sdist")


@pytest.fixture(scope="module")
def installed(wheel):
    """An environment with the wheel, and with this one's packages below it."""
    made = Environment.make(sys.executable, wheel.parents[1] / "environment")
    made.install("--no-deps", "--no-index", wheel)  # before the other packages are seen
    made.lay_over(sys.executable)
    return made


def test_the_wheel_holds_the_package_and_nothing_else(wheel, sources):
    assert faults(wheel, sources) == []
    assert set(wheel_files(wheel)) > DATA


def test_the_wheel_has_licence_and_commands(wheel):
    kept = {name.partition(".dist-info/")[2] for name in wheel_files(wheel)} - {""}
    assert {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt"} == kept


def test_the_wheel_names_every_requirement_and_extra(wheel):
    found = metadata(wheel)
    extras = PROJECT["optional-dependencies"]
    assert found["Name"] == "air-recsys"
    assert found["Requires-Python"] == PROJECT["requires-python"]
    assert set(found.get_all("Provides-Extra", [])) == set(extras)
    assert len(found.get_all("Requires-Dist", [])) == len(PROJECT["dependencies"]) + sum(map(len, extras.values()))


def test_the_sdist_holds_what_a_build_needs_and_no_data(sdist, sources):
    beside = sdist_files(sdist) - package_files(sources)
    made = {name for name in beside if name.startswith("air_recsys.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    assert beside - made == {
        "CHANGELOG.md",
        "LICENSE",
        "MANIFEST.in",
        "README.md",
        "constraints.txt",
        "pyproject.toml",
    }


def test_the_sdist_builds_the_same_wheel(sdist, wheel, tmp_path):
    again = build(unpack(sdist, tmp_path / "sdist"), "wheel", tmp_path / "wheel")
    assert wheel_files(again) == wheel_files(wheel)


def test_the_installed_package_works_outside_its_repository(installed):
    round_trip(installed)


def test_the_installed_command_lists_its_commands(installed):
    shown = command([installed.folder / "bin" / "air-recsys", "--help"], installed.folder)
    assert {"demo", "train", "recommend", "compare"} <= set(shown.split())


def test_every_extra_of_the_library_has_a_promise_that_is_checked():
    """Those without are tools (docs) or a list of others (all)."""
    assert set(PROJECT["optional-dependencies"]) - set(DOORS) == {"docs", "all"}

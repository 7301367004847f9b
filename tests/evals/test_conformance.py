"""The conformance run survives deaths and hangs, judges strictly, and reaches what it must."""

import math

import pytest
import torch

from evals import results
from evals.conformance import architectures, cases, expectations, published, suites, supervisor
from evals.conformance.comparison import compare


def test_the_suites_have_their_sizes():
    assert len(cases.load()) == 93
    assert len(architectures.load()) == 66
    compiled = suites.names("architectures", "compile")
    assert len(compiled) == 24 and set(compiled) < set(architectures.load())


ONES = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("expected", "actual", "why"),
    [
        (ONES, torch.ones(3, 2), "shape"),
        (ONES, ONES.double(), "float64"),
        (ONES, ONES * math.nan, "NaN"),
        ([ONES], [ONES, ONES], "2 results instead of 1"),
        (ONES, 1.0, "instead of a tensor"),
        ("a", "b", "'b' instead of 'a'"),
    ],
)
def test_what_differs_besides_values_is_no_match(expected, actual, why):
    difference = compare(expected, actual)
    assert why in difference.why and not difference.matches


def test_values_are_compared_relative_to_the_largest():
    large = torch.tensor([1000.0, 0.0])
    assert compare(large, large + 0.5).matches
    assert not compare(large / 1000, large / 1000 + 0.5).matches
    assert compare(torch.tensor([math.inf, math.nan]), torch.tensor([math.inf, math.nan])).matches
    assert not compare(torch.tensor([math.inf, 1.0]), torch.tensor([1.0, 1.0])).matches
    assert not compare(True, False).matches


def test_a_constant_reference_is_called_vacuous():
    assert compare(ONES, ONES).vacuous
    assert not compare(torch.arange(3.0), torch.arange(3.0)).vacuous


def test_a_death_a_hang_or_too_few_matches_fall_short():
    whole = [{"case": str(i), "verdict": "match"} for i in range(93)]
    assert not expectations.shortfalls("cases", "eager", whole, 93)
    dead = [*whole[1:], {"case": "x", "verdict": "death"}]
    assert "1 death(s)" in expectations.shortfalls("cases", "eager", dead, 93)[0]
    few = [line | {"verdict": "exception"} if i < 40 else line for i, line in enumerate(whole)]
    assert "at least 63" in expectations.shortfalls("cases", "eager", few, 93)[0]
    assert not expectations.shortfalls("cases", "eager", few[:5], 93)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_run_goes_on_after_a_death_and_a_hang():
    names = ["dies", "differs", "hangs", "raises", "adds"]
    found = supervisor.run("faults", "eager", names, limit=40)
    verdicts = {line["case"]: line["verdict"] for line in found}
    assert verdicts == {
        "dies": "death",
        "differs": "mismatch",
        "hangs": "hang",
        "raises": "exception",
        "adds": "match",
    }


SAMPLE = (
    "layers.scaled_dot_product_attention",
    "models.language_model",
    "optimizers.adamw",
    "indexing.masked_assignment",
    "memory.save_and_load",
)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["eager", "fuse", "compile"])
def test_a_sample_matches_in_every_mode(mode):
    found = supervisor.run("cases", mode, SAMPLE)
    assert {line["verdict"] for line in found} == {"match"}, found


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("suite", "mode"), sorted(expectations.MINIMUM))
def test_a_whole_suite_reaches_what_it_must(suite, mode):
    names = suites.names(suite, mode)
    found = supervisor.run(suite, mode, names)
    assert not expectations.shortfalls(suite, mode, found, len(names)), expectations.counts(found)


LINES = [
    {"case": "adds", "verdict": "match", "relative": 1.234e-7, "detail": "", "vacuous": False},
    {"case": "zero", "verdict": "match", "relative": 0.0, "detail": "", "vacuous": True},
    {"case": "off", "verdict": "mismatch", "relative": 0.05, "detail": "", "vacuous": False},
    {"case": "bad", "verdict": "exception", "detail": "OSError: /some/where/file.so\nmore"},
]
ABOUT = {"suite": "cases", "mode": "fuse", "numerics": "float32", "date": "d", "revision": "r", "versions": {}}


def test_published_figures_say_what_was_found_and_not_where():
    run = published.take(LINES, device="simulated", seconds=7, **ABOUT)
    assert run.matches == {"adds": 1.23e-7, "zero": 0.0} and run.vacuous == ["zero"]
    assert run.others == {"off": ("mismatch", "relative error 5.0e-02"), "bad": ("exception", "OSError: file.so")}
    text = published.page([run])
    assert "| cases | fuse | 4 | 2 | 58 | 1 | 1.2e-07 | 1 | 1 | 0 | 0 | 0 | 7 |" in text
    assert "- bad: exception; OSError: file.so" in text


def test_published_page_is_the_one_its_figures_make():
    runs = [published.Run.model_validate(item) for item in results.read("conformance")]
    assert runs
    assert all(run.total == len(suites.names(run.suite, run.mode)) for run in runs)
    assert (results.FOLDER / "conformance.md").read_text(encoding="utf-8") == published.page(runs)
    for run in runs:
        lines = [{"verdict": "match"}] * run.count("match") + [{"verdict": v} for v, _ in run.others.values()]
        assert not expectations.shortfalls(run.suite, run.mode, lines, run.total)

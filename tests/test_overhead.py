"""What the harness itself does while the clock runs."""

import re
from types import SimpleNamespace

import pytest
from conftest import ran

from gpu_cookbook import catalogue
from gpu_cookbook.run import measure

FIGURE = r"(resident|prepared|transfer): the harness adds -?\d+ ns to a call"


def test_the_overhead_is_measured():
    done = ran("overhead.py")
    assert done.returncode == 0, done.stderr
    *figures, last = done.stdout.splitlines()
    assert [re.fullmatch(FIGURE, line)[1] for line in figures] == ["resident", "prepared", "transfer"]
    assert re.fullmatch(r"Medians of [\d,]+ calls each, and of as many in a bare loop\.", last)


@pytest.mark.parametrize("metric", ["synchronised", "replayed", "there_and_back"])
def test_only_the_call_and_its_wait_are_timed(metric, monkeypatch):
    seen = []

    class Answer:
        def __init__(self):
            seen.append("called")

        def __del__(self):
            seen.append("freed")

    def clock():
        seen.append("clock")
        return len(seen)

    module = SimpleNamespace(
        multiply=lambda a, b: Answer(),
        wait=lambda answer: seen.append("waited"),
        download=lambda answer: answer,
        prepared=lambda a, b: Answer,
        round_trip=lambda a, b: Answer(),
    )
    monkeypatch.setattr(measure, "clock", clock)
    calls = measure.Calls(module, catalogue.workload_module("multiply"), 10)
    monkeypatch.setattr(calls, "verify", lambda turn: None)
    calls.prepare()
    for _ in range(20):
        getattr(calls, metric)(*calls.turn())
    timed = ["clock", "called", *["waited"] * (metric != "there_and_back"), "clock"]
    assert seen == [*3 * timed, *17 * ["freed", *timed]]

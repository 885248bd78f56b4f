"""A metric that something disturbed is taken again, or marked as doubtful wherever it is shown, and ranks nobody."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest
from conftest import invoked, until

from gpu_cookbook import catalogue
from gpu_cookbook.render import tables
from gpu_cookbook.render.change import change
from gpu_cookbook.results import Metric, Result, Status, Timing, completed, ranks, record
from gpu_cookbook.run import load, measure, ways
from gpu_cookbook.run.device import Cuda, Host, Unmeasurable

(NUMPY,) = catalogue.choose(["multiply"], ["numpy"])
WORKLOAD = catalogue.workload_module("multiply")
BUSY = "other programs kept 1.0 of 2 cores busy"
QUIET = load.State(10.0, 5.0, 4.0, 0, {"heat": 1.0})


def later(**changed):
    """One second later, all of it spent by the recipe on one core."""
    return replace(QUIET, time=11.0, busy=6.0, own=5.0, **changed)


@pytest.fixture
def sixteen(monkeypatch):
    monkeypatch.setattr(load.os, "sched_getaffinity", lambda pid: range(16))


@pytest.mark.parametrize(
    ("after", "seen"),
    [
        (later(), None),
        (replace(later(), busy=6.7), None),  # less than 5 % of sixteen cores
        (replace(later(), busy=8.0), "other programs kept 2.0 of 16 cores busy"),
        (replace(later(), own=9.0), None),  # more than the cores' ticks
        (later(cpu_slowed=1), "the CPU slowed down because of heat"),
        (later(gpu_slowed={"heat": 1.005}), None),
        (later(gpu_slowed={"heat": 1.5}), "the GPU slowed down because of heat"),
        (later(gpu_slowed={"its power limit": 3.0}), None),  # counted only since then
    ],
)
def test_what_the_counters_say(after, seen, sixteen):
    assert load.disturbance(QUIET, after) == seen


def test_half_a_core_of_two_is_a_disturbance(monkeypatch):
    monkeypatch.setattr(load.os, "sched_getaffinity", lambda pid: range(2))
    assert load.disturbance(QUIET, replace(later(), busy=6.4)) is None
    assert load.disturbance(QUIET, replace(later(), busy=6.6)) == "other programs kept 0.6 of 2 cores busy"


def test_a_core_is_known_by_its_number(tmp_path, monkeypatch):
    """Cores 1 and 3 are offline."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  9 9 9 9 9 9 9 9 0 0\n" + "".join(f"cpu{n} {100 * n} 0 0 7 7 0 0 0 0 0\n" for n in (0, 2, 4)))
    monkeypatch.setattr(load, "Path", lambda _: stat)
    monkeypatch.setattr(load.os, "sched_getaffinity", lambda _: {2, 4})
    assert load.busy() == 600 / os.sysconf("SC_CLK_TCK")


def test_a_busy_program_is_seen():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:

            def disturbed():
                with load.watched() as watched:
                    subprocess.run(["sleep", "0.5"], check=True)
                return watched.seen

            assert "other programs kept" in until(disturbed)
        finally:
            other.kill()


def test_what_the_recipe_does_itself_is_none():
    before = load.State.now()
    while load.own() < before.own + 0.3:
        pass
    assert load.State.now().busy - before.busy >= 0.2


def seen(monkeypatch, *answers):
    """Lets watched() see one of these after another, and then nothing."""
    left = list(answers)

    @contextmanager
    def watched():
        found = load.Watched()
        yield found
        found.seen = left.pop(0) if left else None

    monkeypatch.setattr(load, "watched", watched)


def numpys(monkeypatch, device=None):
    import gpu_cookbook.recipes.multiply.with_numpy as module

    monkeypatch.setattr(measure, "BUDGET", 0.001)
    return measure.measure(module, WORKLOAD, Result.of(NUMPY, 1000, Status.OK), device or Host(), None)


def test_a_disturbed_metric_is_taken_again(monkeypatch):
    seen(monkeypatch, None, BUSY)
    assert numpys(monkeypatch).doubts == {}


def test_a_metric_that_stays_disturbed_is_doubtful(monkeypatch):
    seen(monkeypatch, None, BUSY, BUSY)
    result = numpys(monkeypatch)
    assert result.ok and result.doubts == {Metric.RESIDENT: BUSY}
    assert set(result.timings) == {Metric.RESIDENT, Metric.TRANSFER}


def test_a_first_result_that_was_disturbed_stays_doubtful(monkeypatch):
    seen(monkeypatch)
    import gpu_cookbook.recipes.multiply.with_numpy as module

    result = replace(Result.of(NUMPY, 1000, Status.OK), doubts={Metric.FIRST: BUSY})
    assert measure.measure(module, WORKLOAD, result, Host(), None).doubts == {Metric.FIRST: BUSY}


# ---- Several ways of taking the device's time.


@pytest.mark.parametrize(
    ("measured", "found", "fault"),
    [
        (1e-5, {}, None),
        (1e-5, {"in a graph": ways.Way(1.04e-5), "by the host's clock": ways.Way(9.6e-6)}, None),
        (1e-6, {"by the host's clock": ways.Way(6e-7)}, None),  # half a microsecond is allowed
        (1e-5, {"by the host's clock": ways.Way(8e-6)}, "ambiguous: 10 µs by events, 8 µs by the host's clock"),
        (1e-5, {"in a graph": ways.Way(8e-6, less=2e-6)}, None),  # two kernels
        (1e-5, {"in a graph": ways.Way(1.1e-5, less=2e-6)}, "ambiguous: 10 µs by events, 11 µs in a graph"),
        (1e-5, {"in a graph": ways.Way(7e-6, less=2e-6)}, "ambiguous: 10 µs by events, 7 µs in a graph"),
    ],
)
def test_ways_agree_within_five_percent_or_half_a_microsecond(measured, found, fault):
    assert ways.disagreement(measured, found) == fault


def a_gpu(host_times):
    device = object.__new__(Cuda)
    device.device_times = lambda call, wall: [call() is None or 1e-7 for _ in range(3)]
    device.host_times = host_times
    return device


def test_a_device_time_that_another_clock_denies_is_doubtful(monkeypatch):
    seen(monkeypatch)
    result = numpys(monkeypatch, a_gpu(lambda call, wall: [2e-6] * 3))
    assert result.doubts == {Metric.DEVICE: "ambiguous: 0.1 µs by events, 2 µs by the host's clock"}


def test_another_way_may_not_exist(monkeypatch):
    def host_times(call, wall):
        raise Unmeasurable("a call waits for the device by itself, so no queue forms")

    seen(monkeypatch)
    monkeypatch.setitem(ways.GRAPHS, "NumPy", lambda call: 1 / 0)
    result = numpys(monkeypatch, a_gpu(host_times))
    assert Metric.DEVICE in result.timings and result.doubts == {}


# ---- Where it is shown.


def made(technique, seconds, **more):
    (recipe,) = catalogue.choose(["multiply"], [technique])
    timing = Timing(seconds, seconds, seconds, 20, (seconds, seconds))
    return replace(Result.of(recipe, 40_000, Status.OK), timings={Metric.RESIDENT: timing}, **more)


def test_a_lane_with_a_doubtful_value_has_no_best():
    fast, slow = made("cupy", 1e-5), made("torch", 2e-5)
    assert ranks([fast, slow], Metric.RESIDENT) == {"cupy": "best"}
    doubtful = replace(slow, doubts={Metric.RESIDENT: BUSY})
    assert ranks([fast, doubtful], Metric.RESIDENT) == {}
    assert ranks([fast, replace(slow, doubts={Metric.TRANSFER: BUSY})], Metric.RESIDENT) == {"cupy": "best"}


def test_a_doubtful_time_gives_no_speedup():
    numpy, torch = made("numpy", 4e-5), made("torch", 2e-5)
    doubts = {Metric.RESIDENT: BUSY}
    assert [each.speedups for each in completed([numpy, torch])] == [{Metric.RESIDENT: 1.0}, {Metric.RESIDENT: 2.0}]
    for pair in ([replace(numpy, doubts=doubts), torch], [numpy, replace(torch, doubts=doubts)]):
        assert completed(pair)[1].speedups == {} and completed(pair)[1].crossings == {}


def test_tables_and_records_show_it():
    result = made("torch", 2e-5, doubts={Metric.RESIDENT: BUSY})
    (table,) = tables.compared([made("cupy", 1e-5), result])
    assert "?20.0 µs" in [entry.text for row in table.rows for entry in row]
    notes = [note.text for note in table.notes]
    assert f"doubtful resident: torch at 40,000: {BUSY}" in notes
    assert record(result)["resident_doubt"] == BUSY
    (stored,) = change([replace(result, doubts={})], [result])[:1]
    assert stored.rows[0][4:] == (tables.Entry("cannot tell", "cannot tell"), tables.Entry(f"after: doubtful: {BUSY}"))


def test_it_is_stored(clone, monkeypatch):
    from gpu_cookbook.store import asv_files

    result = made("numpy", 1e-5, doubts={Metric.RESIDENT: BUSY}, device="a CPU, 2 cores")
    result = replace(result, timings={Metric.RESIDENT: Timing.of([1e-5] * 15)})
    asv_files.Writer(asv_files.Store(), "busy").add(NUMPY, result)
    found, complaints = asv_files.Store().load()
    assert complaints == []
    assert [each.doubts for each in found] == [{Metric.RESIDENT: BUSY}]
    out, _ = invoked("tables", "--machine", "busy", "--format", "json")
    (row,) = (r for table in json.loads(out) for r in table["rows"] if r.get("metric") == "resident")
    assert row["doubt"] == BUSY

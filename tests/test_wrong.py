"""The checker rejects recipes that are wrong, and what breaks costs its own results only."""

import json
import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import HANG, has_ended, in_opencl, rejected, until

from gpu_cookbook import catalogue, machine
from gpu_cookbook.recipes import increment, multiply, random_subset_mean
from gpu_cookbook.results import Metric, Probe, Result, Status, Timing, judged
from gpu_cookbook.run import check, compare, family, manners, measure, memory, runner, worker
from gpu_cookbook.run.device import Cuda, EveryGpu, Host, OpenCl, Unmeasurable
from gpu_cookbook.run.expected import LARGE, PART, Expected
from gpu_cookbook.run.transfers import few_pieces

pytestmark = pytest.mark.usefixtures("whatever_the_rules_say")
WRONG = Path(__file__).parent / "wrong"
RIGHT = Path(__file__).parent / "right"
REASONS = {
    "empty_output": "1 of 1 elements are wrong",
    "dropped_tail": "1 of 1 elements are wrong",
    "dropped_tail_out": "out=: 1 of 1 elements are wrong",
    "stale_result": "negative strides: 2 of 2 elements are wrong",
    "not_waited": "1 of 1 elements are wrong",
    "changes_input": "the caller's own array was changed",
    "broadcasts": "shapes (3,) and (1,): no ValueError",
    "float64": "the result's dtype is float64 instead of float32",
    "any_dtype": "float16 passed to the function itself: no ValueError",
    "any_out": "out= of shape (5, 7): no ValueError",
    "slice_start": "a slice of a device array: 1 of 1 elements are wrong, the first at [0]: nan instead of",
    "slice_before": "a slice of a device array: the elements around it were overwritten",
    "pinned_shared": "pinned(): two arrays share their memory",
    "pinned_float64": "pinned(): an array of float64 (0,) instead of float32 (0,)",
    "pinned_wrong": "with transfer, from page-locked and ordinary arrays: 1 of 1 elements are wrong",
    "last_piece": f"at {few_pieces(multiply.MANY_PIECES):,}, with transfer, ",
    "out_elsewhere": "with transfer, into an array: the result is not in it",
    "out_of_any_shape": "round_trip(out=) of (5, 7): ",
    "round_trip_wrong": "round_trip: 1 of 1 elements are wrong, the first at [0]: 0.0 instead of",
    "round_trip_overwrites": "round_trip: a later call changes the result of an earlier one",
    "round_trip_broadcasts": "round_trip: shapes (3,) and (1,): no ValueError",
    "computes_in_download": "the result holds 2 numbers instead of 1",
    "computes_when_asked": "which is not an array in memory: work may be left to download()",
    "joined_in_download": "elements are wrong",
    "pool_not_waited": "elements are wrong",
    "mostly_joined": "wait() returns before the device is done",
    "dask_deferred": "the Array that is the result is not done",
    "remembers_arrays": "the same arrays with other values: 1 of 1 elements are wrong",
    "remembers_uploads": "with transfer, the same arrays with other values: 1 of 1 elements are wrong",
    "one_buffer": "a later call changes the result of an earlier one",
    "wrong_now_and_then": "elements are wrong",
    "wrong_after_many_calls": "elements are wrong",
    "nan_is_zero": "special values: ",
    "no_negative_zero": "special values: ",
    "clipped": " instead of inf",
    "sign_lost": " instead of -inf",
    "flushes": "special values: ",
    "few_dimensions": "5 dimensions: the result's shape is (2,)",
    "shared_by_threads": "from two threads at once: ",
    "flat_volumes": "3 dimensions: 256 of 256 elements are wrong",
    "six_dimensions": "RuntimeError: too many dimensions",
    "no_columns": "RuntimeError: a launch of no blocks",
    "none_is_zero": "0.0 instead of nan",
    "lazy_round_trip": "round_trip: dask.array.core.Array is not a NumPy array or a number",
    "lazy_download": "dask.array.core.Array is not a NumPy array or a number",
    "one_landing_place": "a later call changes what download() returned before",
    "ignores_out": "out=: 1 of 1 elements are wrong, the first at [0]: nan instead of",
    "remembers_by_a_glance": "the same arrays with other values: 1 of 255 elements are wrong",
    "remembers_blocks": "the same arrays with other values: 1 of 1 elements are wrong",
    "remembers_chunks": "the same arrays with other values: 1 of 1 elements are wrong",
    "remembers_contents": "after the caller has changed a result: 1 of 1 elements are wrong",
    "remembers_handles": "the same call again completes while every other process is stopped",
    "memory_order": "the transpose of a device array: ",
    "round_trip_not_joined": "with transfer, the result is there before the device is done",
    "pairs_then_download": " numbers instead of 1",
    "stale_padding": "one of many calls, at 1×1×1: 1 of 1 elements are wrong",
    "strassen": "24 bits in a: 44,942 of 262,144 elements are not exact",
    "half_by_eights": "at 512×512×512: ",
    "float32_aligned": "at 4,096×1,040: ",
    "fixed_point": "rows and columns of different magnitudes: ",
    "flushes_small": "rows and columns of different magnitudes: ",
    "ids_of_three_bits": "33×33 in chunks of 2, 100 seeds: (mean - 11) √n has a variance of ",
    "tiles_large": "10000×17 in chunks of 10000, 64 seeds: (mean - 11) √n has a variance of ",
    "download_remembers": "out=: 1 of 1 elements are wrong",
    "sparse_in_2d": "special values: ",
    "any_strides": "every other element of a device array: ",
    "prepared_once": "prepared: call 1: 1 of 1 elements are wrong",
    "prepared_elsewhere": "prepared: call 1: 1 of 1 elements are wrong, the first at [0]: nan",
    "handle_in_a_tuple": "after wait(), the MapResult that is the result is not done",
    "waits_for_one": "done",  # what is not, or that wait() returns before all processes are
    "ring_of_results": "a later call changes the result of an earlier one",
    "ring_of_uploads": "after many calls, what was uploaded first at 1: wrong values",
    "not_in_place": "a slice of a device array: 1 of 1 elements are wrong, the first at [0]: ",
    "adds_in_place": "after the call, the arrays that it was given: wrong values",
    "adds_in_upload": "upload(): wrong values",
    "seed_or_none": "seed 0 gave ",
    "count_of_16_bits": "numbers of np.int16 gave ",
    "download_in_any_order": "download into float32 in Fortran's order: 4 of 6 elements are wrong",
    "download_into_read_only": "download into a read-only array: no error",
    "fraction_of_a_seed": "seed=3.5: no TypeError",
    "plan": "the result holds whole numbers, and no sum or mean: work is left to download()",
    "medium_tail": "one of many calls, at 1,003: 43 of 1,003 elements are wrong",
    "large_tail": "at 1,048,583: 7 of 1,048,583 elements are wrong",
    "tiles": "one of many calls, at 259×67×261: 783 of 67,599 elements are wrong",
    "three_products": "one of many calls, at 259×67×261: ",
    "float32_for_large": "at 4,099×2,055: ",
    "eight_sums": "at 1,048,576: ",
    "rest_left_out": " instead of 315.458",
    "fractions": "fractions instead of whole numbers: no ValueError",
    "keys_of_32_bits": "keys that differ in their upper bits only: the result holds 1 numbers instead of 16",
    "float32_sums": "elements are wrong, the first at [0]: ",
    "as_they_come": "elements are wrong, the first at [0]: ",
    "remembers_table": "the next call returns the same result again, and may have done nothing",
    "mean_in_download": "the result is a pandas.",
    "no_penalty": "elements are wrong, the first at [0]: ",
    "no_intercept": "2 of 2 elements are wrong, the first at [0]: ",
    "penalised_intercept": "2 of 2 elements are wrong, the first at [0]: ",
    "not_centred": "samples and targets far from 0: ",
    "in_float32": "elements are wrong, the first at [",
    "factors_of_11_bits": "elements are wrong, the first at [0]: ",
    "uncentred": "elements are wrong, the first at [0, 0]: ",
    "divided_by_n": "9 of 110 elements are wrong, the first at [0, 0]: ",
    "any_sign": "elements are wrong, the first at [",
    "components_in_float32": "110 of 110 elements are wrong, the first at [0, 0]: ",
    "keys_as_numbers": "elements are wrong, the first at [0]: ",
    "values_only": "the result holds 1 numbers instead of 2",
    "circular": "elements are wrong, the first at [0]: ",
    "kernel_not_reversed": "elements are wrong, the first at [0]: ",
    "shifted": "elements are wrong, the first at [0]: ",
    "signal_in_float16": "1 of 1 elements are wrong, the first at [0]: ",
    "batches": "shapes (3, 3) and (3,): no ValueError",
    "any_dtype_of_b": "float16 passed to the function itself: no ValueError",
    "any_dtype_of_out": "out= of float16: no ValueError",
    "prepared_skips_zeros": "prepared: special values: ",
    "reused": "1000×1000 in chunks of 1000, 64 seeds: (mean - 11) √n has a variance of",
    "antithetic": "1000×1000 in chunks of 1000, 64 seeds: (mean - 11) √n has a variance of 0, not 1",
    "seeds_of_16_bits": "of the seeds 1, 2, 4, … 2**31, at least 3 pairs have equal samples",
    "out_in_steps": "out= is one of the inputs: 1 of 1 elements are wrong",
    "any_four_bytes": " and the other byte order: ",
    "keys_as_floats": "neighbouring keys beyond 2**53, where float64 has gaps: the result holds ",
    "ring_of_scratch": "from two threads at once: ",
    "lock_too_short": "from two threads at once: ",
    "global_size": "from two threads at once: ",
    "sorted_in_place": "the table that it was given does not look as before",
    "column_left": "the table that it was given does not look as before",
    "lru_of_tables": "the same table with other values: ",
    "scaled_only": "1.0 instead of 1.0000000150474662e+30",
    "negative_infinity": "-1e+30 everywhere: -inf instead of ",
    "small_is_zero": "2e-19 everywhere: 0.0 instead of",
    "two_groups": "at 2,097,155 rows: the result holds 2,097,158 numbers instead of 4,194,310",
    "fills_nan": "special values: 1 of 2 elements are wrong",
    "power_of_two_less_one": "at 249×9: ",
    "both_empty": "ValueError: negative dimensions are not allowed",
    "sign_of_first": "at 301×131: ",
    "codes_uint16": "at 1,000,003 rows of 500,000 keys: the result holds 65,536 numbers",
    "first_two_of_batch": "3 of 4 elements are wrong, the first at [0]: ",
    "lru_cache": "after the call, something still refers to the file that it was given",
    "uint64_wraps": "whole numbers beyond int64: no ValueError",
    "small_scratch": "from two threads at once: ",
    "out_same_size": "out= of shape (100003, 1): no ValueError",
    "same_length": "shapes (3,) and (3, 1): no ValueError",
    "zero_rows": "zeros beside NaN: ",
    "blocks_of_1024": "at 1,100×8,200×9: 684 of 9,900 elements are wrong",
    "sklearn_config": "changes scikit-learn's configuration",
    "no_refusals": "rows, columns and chunk (-1, 1, 1): no ValueError",
    "square_in_place": "the same array twice: wrong values",
    "gram_matrix": "the same array twice: 40,000 of 40,000 elements are wrong",
    "transposed_in_place": "the same array twice: 40,000 of 40,000 elements are wrong",
    "ones_given_back": "a caller who changes the result changes an input",
    "identity_given_back": "a caller who changes the result changes an input",
    "one_given_back": "a caller who changes the result changes an input",
    "round_trip_ones": "round_trip: a caller who changes the result changes an input",
    "flat_copy": "the transpose of a device array: 256 of 256 elements are wrong",
    "prepared_transposed": "prepared: the same arrays with other values: 1 of 1 elements are wrong",
    "prepared_one_result": "prepared: a call, and then one of another function: 1 of 1 elements are wrong",
    "out_scratch": "out=: from two threads at once: ",
    "prepared_scratch": "prepared: from two threads at once: ",
    "lazy_table": "from two threads at once, at the first call: 2 of 2 elements are wrong",
    "lazy_kernel": "from two threads at once, at the first call: TypeError: ",
    "process_id": "seed 10000 gave ",
    "entropy_at_import": "seed 10000 gave ",
    "rows_for_columns": "1×28 in chunks of 7: a mean -19 standard errors off",
    "shape_swapped": "1×28 in chunks of 7: a mean -19 standard errors off",
    "raises": "AttributeError: module 'numpy' has no attribute 'row_stack'",
    "out_skips_zeros": "out=: special values:",
    "ones_ignore_out": "where the answer is one of the inputs: out=: 1 of 1 elements are wrong",
    "large_flat_out": "at 1,048,576: out=: 1,048,576 of 1,048,576 elements are wrong",
    "small_square": "the same array twice: wrong values",
    "twice_into_itself": "the same array twice, and as out=: 1 of 1 elements are wrong",
    "prepared_2d_zeros": "prepared: zeros beside NaN: 1 of 1 elements are wrong",
    "early_return_empty": "shapes (0,) and (4,): no ValueError",
    "or_float64": "float64 passed to the function itself: no ValueError",
    "out_or_float64": "out= of float64: no ValueError",
    "late_refusal": "float16 passed to the function itself: it was refused, and written to",
    "norm_empty_early": "float16 of no elements passed to the function itself: no ValueError",
    "subclass_kept": "a class of its own and Fortran order:",
    "ints_by_bits": "a field of records and whole numbers:",
    "upload_any_order": "negative strides: upload() returns an array that is not C-contiguous",
    "memo_read_only": "the result is read-only, and nothing else has its memory",
    "remembers_strings": "after the call, something still refers to the strings that it was given",
    "restores_input": "from two threads at once:",
    "global_generator": "from two threads at once:",
    "seed_none_default": "the function takes (rows, columns, chunk=10000, seed=None) instead of",
    "pandas_option": "changes pandas' options",
    "arrow_pool": "changes PyArrow's pool of memory",
    "blas_threads": "changes the number of threads of",
    "lru_of_bytes": "the same values again: product() leaves out a part of line",
    "remembers_seeds": "the same values again: random_subset_mean() leaves out a part of line",
    "rows_by_columns": "one of many calls, at 1,002×11:",
    "norm_in_upload": "upload(): an array of 100,003 elements becomes one of 100,004",
    "product_in_upload": "upload(): an array of 100,003 elements becomes one of 200,006",
    "product_of_upload": "upload(): what a Given holds cannot be seen",
    "product_beside_upload": "upload(): with arrays of two uploads, 100,003 of 100,003 elements are wrong",
    "norm_beside_upload": "upload(): in line 27, norm() does something else with other arrays of the same values",
}
NOT_WAITED = ("pyopencl_not_waited", "pyopencl_other_queue", "pyopencl_as_cpu")
# What the rules refuse before anything of it runs.
RULES = {
    "patches_clock": "line 8: imports time: ",
    "patches_numpy": "line 10: changes numpy: a recipe changes nothing outside of itself",
    "patches_reference": "line 10: imports gpu_cookbook.recipes: a recipe imports nothing from this project",
    "looks_around": "line 8: imports inspect: ",
    "hidden_import": "line 18: uses __import__: write what is meant, so that it can be read",
    "edits_file": "line 20: uses .write_text: a recipe writes no file",
    "pasted_wrong": "line 22: uses __name__: a recipe does the same under any name",
    "bare_except": "line 24: catches every exception: name the one that is expected",
    "main_checks_nothing": "line 33: checks nothing: run as a script, a recipe checks its own result",
}
# What it leaves behind or changes, when it is called again and again.
MANNERS = {
    "prints": "prints: 1 255 ",
    "prints_below_python": "prints: multiplying multiplying ",
    "leaks_memory": "more bytes of host memory after each call",
    "leaks_objects": "more Python objects after each call",
    "leaks_files": "leaks: 1 more open files after each call",
    "leaks_where_memory_is_free": "more bytes of host memory after each call",
    "leaks_outs": "more bytes of host memory after each call",
    "leaks_in_a_process": "more bytes of memory in other processes after each call",
    "leaks_blocks": "more blocks of shared memory after each call",
    "changes_dask": "changes Dask's array",
    "temp_folders": "leaks: 1 more files for temporary use after each call",
    "torch_interop": "changes PyTorch's number of threads; changes PyTorch's repeated warnings",
    "numba_chunks": "changes Numba's size of chunks",
    "joblib_config": "changes joblib's configuration",
    "leaks_threads": "leaks: 1 more threads after each call",
    "changes_errors": "changes NumPy's handling of errors (np.seterr)",
    "changes_environment": "changes the environment variable OMP_NUM_THREADS",
    "changes_random": "changes NumPy's global random state",
    "takes_all_cores": "(os.cpu_count), not the ",
    "listens": "listens on 0.0.0.0, not only on 127.0.0.1",
    "leaves_process": "leaves processes behind: sleep",
    "writes_elsewhere": "writes /var/tmp/gpu-cookbook-notes",
}
# How its process ends, at the third call.
ENDS = {
    "exits": "SystemExit: 0",
    "exits_at_once": "ended its process, with exit code 0, before it was done",
    "exits_with_3": "ended with exit code 3",
    "terminates_itself": "crashed: SIGTERM",
    "signals_in_real_time": "crashed: signal 35",
    "forks": "ended its process, with exit code 0, before it was done",
    "writes_garbage": "wrote something else into the pipe through which gpu-cookbook gets results",
    "floods": "wrote something else into the pipe through which gpu-cookbook gets results",
    "forges": "wrote something else into the pipe through which gpu-cookbook gets results",
    "closes_descriptors": "OSError: [Errno 9] Bad file descriptor",
}
# One of each way in which the process that is timed finds what is wrong by itself, without the check before it.
MEASURED = ("stale_result", "not_waited", "one_buffer", "wrong_now_and_then")
# The other bad manners are slow together.
QUICK_MANNERS = ("prints", "leaks_memory", "leaks_objects", "changes_errors", "takes_all_cores", "leaves_process")
# One of each class that check rejects within a second; the others are slow together, and some by themselves.
QUICK_TO_REJECT = (
    *("empty_output", "dropped_tail_out", "stale_result", "changes_input", "any_dtype", "slice_start", "memory_order"),
    *("round_trip_wrong", "computes_in_download", "joined_in_download", "remembers_by_a_glance", "remembers_contents"),
    *(
        "one_buffer",
        "wrong_now_and_then",
        "any_out",
        "nan_is_zero",
        "few_dimensions",
        "prepared_once",
        "fixed_point",
        "reused",
    ),
)
PROBE = Probe("this CPU", 1e9, 0)


def recipe(name):
    (path,) = WRONG.glob(f"*/with_{name}.py")
    return catalogue.read(path)


def edge_sizes(recipe):
    return list(catalogue.workload_module(recipe.workload).EDGE_SIZES)


def marks(name, quick):
    needs = [in_opencl] if recipe(name).framework == "PyOpenCL" else []
    return needs if name in quick else [*needs, pytest.mark.slow]


@pytest.mark.slow
@pytest.mark.parametrize("path", RIGHT.glob("*/with_*.py"), ids=lambda path: path.stem)
def test_check_refuses_no_right_recipe(path):
    right = catalogue.read(path)
    assert [(each.size, each.reason) for each in runner.run(right, "check", edge_sizes(right)) if not each.ok] == []


def test_every_wrong_recipe_is_tried():
    tried = {
        *REASONS,
        *RULES,
        *MANNERS,
        *ENDS,
        *NOT_WAITED,
        "stops_itself",
        "crash",
        "crash_at_end",
        "dies",
        "hang",
        "out_of_memory",
    }
    assert tried == {path.stem.removeprefix("with_") for path in WRONG.glob("*/with_*.py")}


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name, QUICK_TO_REJECT)) for name in REASONS])
def test_check_rejects_and_compare_measures_nothing(name, monkeypatch):
    results = rejected(recipe(name), monkeypatch)
    assert len(results) == len(edge_sizes(recipe(name)))
    bad = [each for each in results if each.status == Status.FAILED]
    assert bad, "a wrong recipe passed"
    assert any(REASONS[name] in each.reason for each in bad), bad


@in_opencl
@pytest.mark.parametrize("name", NOT_WAITED)
def test_check_rejects_a_wait_that_a_device_would_show(name):
    """Its memory may be seen to be wrong before that."""
    for each in runner.run(recipe(name), "check", [255, 100_003]):
        assert re.search(r"wait\(\) returns before the device is done|elements are wrong", each.reason)


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name, QUICK_MANNERS)) for name in MANNERS])
def test_bad_manners_are_named(name, monkeypatch):
    monkeypatch.setattr(runner, "LEFT_LIMIT", 1)  # what stays here would stay for ten minutes
    (result,) = runner.run(recipe(name), "check", [255])
    assert result.status == Status.FAILED
    assert MANNERS[name] in result.reason


def test_a_thread_that_is_about_to_end_is_not_counted(tmp_path, monkeypatch):
    """The system lists one that was joined until it has run to its end. If it counted, a leak would not grow in each
    round."""

    def listed(number, state):
        (tmp_path / number).mkdir()
        (tmp_path / number / "stat").write_text(f"{number} (a name) with) {state} 1 2 3")

    ended = str(2**23)  # a number that no thread of this machine has
    for number in (str(2**23 + 1), str(2**23 + 2)):
        listed(number, "S")
    assert manners._threads(tmp_path) == 2
    listed(ended, "R")
    monkeypatch.setattr(manners, "ENDING", 0.01)
    assert manners._threads(tmp_path) == 3  # it goes on running
    monkeypatch.setattr(manners, "ENDING", HANG)
    monkeypatch.setattr(manners.time, "sleep", lambda _: (tmp_path / ended / "stat").unlink(missing_ok=True))
    assert manners._threads(tmp_path) == 2


@pytest.mark.parametrize(
    ("name", "action"),
    [*((name, "check") for name in ENDS), ("exits_at_once", "measure"), ("writes_garbage", "measure")],
)
def test_an_early_end_is_told(name, action):
    first, last = runner.run(recipe(name), action, [255, 256], probe=PROBE)
    assert first.status == Status.FAILED
    assert last.ok == (name == "exits")  # which Python tells as an exception, and the process goes on
    assert ENDS[name] in f"{first.reason} {last.reason}"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("one_buffer", f"failed its check at 1: {REASONS['one_buffer']}"),
        ("leaks_memory", "failed its check: leaks: "),
        ("exits_at_once", f"failed its check at 0: {ENDS['exits_at_once']}"),
    ],
)
def test_compare_says_why_it_measures_nothing(name, reason):
    comparison = compare.Comparison([recipe(name)], {"multiply": [100, 1_000]})
    outcome = comparison.measure(lambda *_: None, lambda: None, save=None)
    assert [(each.size, each.status) for each in outcome.results] == [(100, "failed"), (1_000, "failed")]
    assert all(each.reason.startswith(reason) for each in outcome.results), outcome.results


@pytest.mark.parametrize("name", MEASURED)
def test_answers_are_checked_in_the_process_that_is_timed_too(name):
    (result,) = runner.run(recipe(name), "measure", [100], probe=PROBE)
    assert result.status == Status.FAILED and not result.timings


def test_a_crash_costs_its_own_result_and_those_after_it():
    first, second, third = runner.run(recipe("crash"), "measure", [1000, 1_000_000, 2_000_000], probe=PROBE)
    assert first.ok
    assert (second.status, second.reason) == ("failed", "crashed: SIGABRT")
    assert (third.status, third.reason) == ("failed", "not reached: crashed: SIGABRT")


def test_a_crash_at_the_end_costs_the_last_result():
    first, last = runner.run(recipe("crash_at_end"), "check", [255, 256])
    assert (first.status, last.status) == ("ok", "failed")
    assert last.reason == "passed, then: crashed: SIGABRT"


def test_an_interrupt_keeps_the_last_result(monkeypatch):
    def interrupted(*_):
        yield {"result": Result.of(recipe("crash"), 255, Status.OK)}
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.Process, "messages", interrupted)
    results = runner.run(recipe("crash"), "check", [255])
    assert next(results).ok
    with pytest.raises(KeyboardInterrupt):
        next(results)


FORGED = {
    "a size that nobody asked for": [{"start": (1,)}],
    "a message of another action": [{"cost": None}],
    "a result that was told before": 2 * [{"result": Result.of(recipe("crash"), 255, Status.OK)}],
}


@pytest.mark.parametrize("messages", FORGED.values(), ids=FORGED)
def test_what_no_worker_says_is_garbage(messages, monkeypatch):
    monkeypatch.setattr(runner.Process, "messages", lambda *_: iter(messages))
    *_, last = runner.run(recipe("crash"), "measure", [255, 256])
    assert last.status == Status.FAILED and runner.GARBAGE in last.reason


def test_a_result_belongs_to_the_recipe_that_runs(monkeypatch):
    other = replace(Result.of(recipe("crash"), 255, Status.OK), workload="none", technique="none", lane="tuned")
    messages = [{"device": "CPU"}, {"result": other}]
    monkeypatch.setattr(runner.Process, "messages", lambda *_: iter(messages))
    (result,) = runner.run(recipe("crash"), "measure", [255])
    assert (result.workload, result.technique, result.lane) == ("multiply", "crash", "idiomatic")


def test_nothing_is_left_of_a_worker_that_died(tmp_path, monkeypatch):
    monkeypatch.setenv("CHILD", str(tmp_path / "child"))
    (result,) = runner.run(recipe("dies"), "check", [255])
    assert result.reason.startswith("killed by SIGKILL")
    child = int((tmp_path / "child").read_text())
    until(lambda: has_ended(child))  # SIGKILL takes a moment


def test_nothing_is_left_of_a_worker_that_starts_processes_while_it_is_ended(monkeypatch):
    monkeypatch.setattr(family, "KILL_LIMIT", HANG)
    with runner.Process({"action": "check", "path": str(recipe("hang").path), "sizes": [255]}) as process:
        monkeypatch.setenv(family.MARK, process.folder)
        with subprocess.Popen(["bash", "-c", "while :; do sleep 60 & sleep 0.002; done"]):
            until(lambda: len(list(process.family())) >= 10)
            process.kill()
        assert list(process.family()) == []


def test_a_device_whose_bandwidth_is_unknown_costs_its_own_results():
    (result,) = runner.run(recipe("crash"), "measure", [1000], probe=Probe(failed="out of memory"))
    assert result.status == Status.FAILED
    assert result.reason.endswith("could not be measured: out of memory")


def test_a_device_time_that_is_lost_in_the_noise_is_none():
    device = object.__new__(OpenCl)
    device._batch = lambda count, call, busy: (0.0, 1.0)  # twice the calls take as long
    with pytest.raises(Unmeasurable, match="a call is too short"):
        device.device_times(lambda: None, 1e-3)


def test_a_call_whose_result_is_on_the_host_has_waited_for_the_device():
    import polars as pl

    for result in (1.5, np.ones(3), (np.ones(3), 2), pl.DataFrame({"mean": [0.5, 1.5]})):
        with pytest.raises(Unmeasurable, match="a call waits for the device by itself"):
            object.__new__(Cuda).device_times(lambda result=result: result, 1e-3)


@pytest.mark.slow
def test_a_hang_is_stopped(monkeypatch):
    monkeypatch.setattr(multiply, "TIME_LIMIT", 15)  # the size before it takes one second, where nothing else runs
    first, second = runner.run(recipe("hang"), "measure", [1000, 1_000_000], probe=PROBE)
    assert first.ok
    assert (second.status, second.reason) == ("failed", "timed out after 15 s")


@pytest.mark.slow
def test_a_stop_is_told(monkeypatch):
    monkeypatch.setattr(multiply, "TIME_LIMIT", 15)
    (result,) = runner.run(recipe("stops_itself"), "check", [255])
    assert result.status == "failed"
    assert result.reason == "was stopped by a signal, and timed out after 15 s"


@pytest.mark.slow
def test_out_of_memory_costs_one_size():
    results = list(runner.run(recipe("out_of_memory"), "measure", [1000, 1_000_000, 2_000_000], probe=PROBE))
    assert [each.status for each in results] == ["ok", "failed", "ok"]
    assert results[1].reason == "MemoryError: Unable to allocate 3.64 TiB"


def test_what_does_not_fit_is_skipped_with_the_numbers():
    (result,) = runner.run(catalogue.choose(["multiply"], ["numpy"])[0], "measure", [2**50], probe=PROBE)
    assert result.status == Status.SKIPPED
    assert result.reason.startswith("needs 40.5 PB of host memory, but only ")


def measured(module, device, size=1000):
    """What measure() makes of a module that does NumPy's work for multiply."""
    (recipe,) = catalogue.choose(["multiply"], ["numpy"])
    return measure.measure(module, multiply, Result.of(recipe, size, Status.OK), device, None)


def numpy_recipe():
    import gpu_cookbook.recipes.multiply.with_numpy as module

    return module


def incremented(function):
    """NumPy's recipe for increment, with another function."""
    return SimpleNamespace(upload=numpy_recipe().upload, increment=function, wait=lambda a: None, download=np.copy)


def in_place(a):
    a += 1
    return a


def and_before(a):
    if a.base is not None:
        a.base[0] = 7
    return in_place(a)


def and_behind(a):
    if a.base is not None:
        a.base[-1] = 7
    return in_place(a)


def with_its_neighbours(a):
    if a.base is not None:
        a.base[[0, -1]] += 1
    return in_place(a)


def refuses(a):
    raise ValueError("increment takes no slice")


def crashes(a):
    raise RuntimeError("misaligned address\nand more")


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (in_place, None),
        (and_before, "the elements around it were overwritten"),
        (and_behind, "the elements around it were overwritten"),
        (with_its_neighbours, "the elements around it were overwritten"),
        (refuses, None),
        (crashes, "RuntimeError: misaligned address"),
    ],
)
@pytest.mark.parametrize("size", [0, 1, 257])
def test_a_slice_has_neighbours_and_may_be_refused(function, fault, size):
    found = check.check_views(incremented(function), increment, increment.inputs(size))
    assert found == (fault and f"a slice of a device array: {fault}")


@pytest.mark.parametrize(
    ("skips", "what"),
    [
        (lambda a, out: out.base is not None, "a slice of a device array: "),
        (lambda a, out: out.base is not None and a.base is None, "a slice of a device array as out=: "),
    ],
)
def test_an_out_that_is_a_slice_is_what_is_written(skips, what):
    module = SimpleNamespace(wait=lambda c: None, download=np.copy)
    module.upload = lambda *arrays: tuple(np.array(x) for x in arrays)
    module.multiply = lambda a, b, out=None: np.multiply(a, b, out=None if out is None or skips(a, out) else out)
    found = check.check_views(module, multiply, multiply.inputs(2))
    assert found.startswith(what + "2 of 2 elements are wrong, the first at [0]: nan instead of")


def test_products_of_the_neighbours_are_found():
    def product(a, b, out=None):
        if out is None or any(x.base is None for x in (a, b, out)):
            return np.multiply(a, b, out=out)
        np.multiply(a.base, b.base, out=out.base)
        return out

    module = SimpleNamespace(wait=lambda c: None, download=np.copy, multiply=product)
    module.upload = lambda *arrays: tuple(np.array(x) for x in arrays)
    found = check.check_views(module, multiply, multiply.inputs(2))
    assert found == "a slice of a device array: the elements around it were overwritten"


def test_a_handle_of_other_processes_is_not_sliced():
    module = SimpleNamespace(upload=lambda *arrays: (object(),) * len(arrays), wait=None, download=None)
    module.multiply = lambda a, b: pytest.fail("it was called")
    assert check.check_views(module, multiply, multiply.inputs(2)) is None


class OneStep:
    """NumPy's recipe, and a round_trip of its own."""

    def __init__(self, round_trip):
        self.round_trip = round_trip

    def __getattr__(self, name):
        return getattr(numpy_recipe(), name)


def test_transfer_is_the_time_of_round_trip_where_there_is_one(monkeypatch):
    monkeypatch.setattr(measure, "TAKES", 1)  # however busy this machine is
    calls = []
    module = OneStep(lambda a, b: calls.append(1) or a * b)
    assert check.check_size(module, multiply, 100, Host()) is None
    checked = len(calls)
    (_, first), *others = multiply.special_inputs(100)
    tried = [*check.variants(multiply.inputs(100)), *check.variants(first), *others]
    assert checked == 2 * len(tried) + 6  # the same arrays with other values, twice; one array twice; ones, twice
    result = measured(module, Host(), 100)
    more = len(calls) - checked - result.timings[Metric.TRANSFER].count
    assert 0 <= more <= measure.SETS  # of sets of which one element was another
    with pytest.raises(measure.Wrong, match="^with transfer: 100 of 100 elements are wrong"):
        measured(OneStep(lambda a, b: a + b), Host(), 100)


def test_what_is_kept_by_its_contents_is_of_no_use_in_timed_calls():
    kept, calls = {}, []

    def remembering(a, b):
        key = a.tobytes(), b.tobytes()
        calls.append(key in kept)
        if key not in kept:
            kept[key] = np.multiply(a, b)
        return kept[key].copy()

    module = OneStep(remembering)
    module.multiply = remembering
    assert measured(module, Host(), 100).timings[Metric.TRANSFER].count > 100
    assert sum(calls) < len(calls) / 10


def test_a_ring_of_two_results_is_found_out_too():
    ring = [np.empty(100, np.float32), np.empty(100, np.float32)]

    def turn(a, b):
        ring.reverse()
        return np.multiply(a.reshape(-1), b.reshape(-1), out=ring[0]).reshape(a.shape)

    assert check.check_size(OneStep(turn), multiply, 100, Host()) == (
        "round_trip: a later call changes the result of an earlier one"
    )


@pytest.mark.parametrize("shape", [LARGE + 3, (LARGE // 8, 8), (2, LARGE)])
def test_a_large_result_is_wrong_where_it_is(shape):
    """It is compared in parts: at both ends of each, and with the tolerance of each element."""
    x = np.linspace(1, 2, np.prod(shape), dtype=np.float32).reshape(shape)
    tolerance = x * 1e-3
    workload = SimpleNamespace(reference=lambda x: x.astype(np.float64), tolerance=lambda expected, x: tolerance)
    expected = Expected(workload, [x])
    assert expected.disagreement(x + tolerance / 2) is None
    for place in (0, 1, PART - 1, PART, x.size // 2, x.size - 1):
        for value in (x.flat[place] * np.float32(1.002), np.float32(np.nan), np.float32(np.inf)):
            wrong = x + tolerance / 2
            wrong.flat[place] = value
            at = [int(i) for i in np.unravel_index(place, x.shape)]
            fault = f"1 of {x.size:,} elements are wrong, the first at {at}: {value} instead of "
            assert expected.disagreement(wrong).startswith(fault)
    exact = Expected(SimpleNamespace(reference=lambda x: x * 0, tolerance=lambda expected, x: 0), [x])
    signed = np.zeros_like(x)
    assert exact.disagreement(signed) is None
    signed.flat[PART] = -0.0
    assert exact.disagreement(signed).startswith(f"1 of {x.size:,} elements are wrong")


@pytest.mark.parametrize("seconds", [1, 100])
def test_checks_between_timed_calls_take_a_third_of_the_time(seconds, monkeypatch):
    """Of a clock that only moves here: by 1 in each call, by ``seconds`` in each check."""
    own, now, checks = numpy_recipe(), [0.0], []

    def work(a, b):
        now[0] += 1
        return np.multiply(a, b)

    def verify(turn):
        now[0] += seconds
        checks.append(turn)

    monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    calls = measure.Calls(SimpleNamespace(multiply=work, wait=own.wait, download=own.download), multiply, 100)
    monkeypatch.setattr(calls, "verify", verify)
    calls.begin()
    for _ in range(3_200):
        calls.synchronised(*calls.turn())
    rare, most = 3_200 // measure.EVERY, 1_600 // seconds
    assert min(rare, most) <= len(checks) <= min(rare, most) + 2


def test_round_trip_leaves_its_input_alone():
    module = OneStep(lambda a, b: np.multiply(a, b, out=a if a.flags.writeable else None))
    assert check.check_size(module, multiply, 100, Host()) == "round_trip: the caller's own array was changed"


class Clock(Host):
    """A device whose own clock says that every call takes ``seconds``; ``waited``: whether wait() waits for it."""

    def __init__(self, seconds, waited=True):
        super().__init__()
        self.seconds, self.waited = seconds, waited

    def late(self, call, wait, right):
        return not self.waited

    def device_times(self, call, wall):
        call()
        return [self.seconds] * 10


def test_an_upload_that_goes_on_behind_is_in_no_resident_time(monkeypatch):
    monkeypatch.setattr(measure, "COLD_LIMIT", 0)
    numpy_own = numpy_recipe()
    arriving = []

    def upload(*arrays):
        arriving.append(1)
        return numpy_own.upload(*arrays)

    def work(a, b):
        time.sleep(0.3 * len(arriving))
        arriving.clear()
        return numpy_own.multiply(a, b)

    recipe = SimpleNamespace(upload=upload, multiply=work, wait=numpy_own.wait, download=numpy_own.download)
    assert measured(recipe, Host()).value(Metric.RESIDENT) < 0.2


def test_no_timed_call_has_the_seed_of_another():
    seeds = []

    def mean(rows, columns, chunk, seed):
        seeds.append(seed)
        return 11.0

    (recipe,) = catalogue.choose(["random_subset_mean"], ["numpy"])
    module = SimpleNamespace(random_subset_mean=mean, wait=lambda mean: None, download=float)
    measure.measure(module, random_subset_mean, Result.of(recipe, 40, Status.OK), Host(), None)
    timed = [seed for seed in seeds if seed]  # the first call, which is not timed, has seed 0
    assert len(timed) == len(set(timed)) >= measure.SAMPLES


def test_a_call_that_was_not_waited_for_is_refused():
    result = measured(numpy_recipe(), Clock(1.0, waited=False))
    assert (
        result.status == Status.REFUSED
        and "the call did not wait for the device" in result.reason
        and not result.timings
    )


def test_a_queue_that_is_slower_than_one_call_has_no_device_time():
    result = measured(numpy_recipe(), Clock(1.0))
    assert result.ok and Metric.DEVICE not in result.timings
    assert result.no_device_time.startswith("calls in a full queue")


def test_a_call_that_was_waited_for_is_not():
    assert measured(numpy_recipe(), Clock(1e-9)).value(Metric.DEVICE) == 1e-9


def test_a_device_without_a_clock_says_why():
    with pytest.raises(Unmeasurable):
        Host().device_times(None, 1)
    assert measured(numpy_recipe(), Host()).no_device_time == "there is no clock other than the host's"


def taking(seconds, metric=Metric.RESIDENT, workload="multiply", technique="numpy", size=10**6, **known):
    """A result of which nothing but this time is known, and what its device can do."""
    (recipe,) = catalogue.choose([workload], [technique])
    return judged(replace(Result.of(recipe, size, Status.OK), timings={metric: Timing(seconds)}, **known))


COPIED = {"copy_bandwidth": 100.0, "cache_bytes": 1000, "cache_bandwidth": 1.0}
CACHED = {"copy_bandwidth": 1.0, "cache_bytes": 10**9, "cache_bandwidth": 100.0}
ADDED = {"arithmetic": 100.0}
SAMPLES = {"workload": "random_subset_mean", "size": 4_000}  # 4,000,000 of them are in the subset
IMPOSSIBLE = {  # name: (billions of bytes or operations, per second in which nothing is refused, known, the reason)
    "memory": (0.012, 149, 151, COPIED, "151 GB/s is more than this device can do: a copy on it runs at 100 GB/s"),
    "memory of a GPU": (
        *(0.012, 114, 116, COPIED | {"empty_kernel": 1e-12}),
        "116 GB/s is more than this device can do: a copy on it runs at 100 GB/s",
    ),
    "cache": (0.012, 149, 151, CACHED, "151 GB/s is more than this device can do: its cache runs at 100 GB/s"),
    "a cache of unknown size": (
        *(0.012, 149, 151, CACHED | {"cache_bytes": None}),
        "151 GB/s is more than this device can do: its cache runs at 100 GB/s",
    ),
    "products": (
        *(2.0, 299, 301, ADDED | {"workload": "matmul", "technique": "numba_tuned", "size": 1_000}),
        "301 Gop/s, at the least, is more than this device can do: it multiplies and adds at 100 Gop/s",
    ),
    "samples": (
        *(0.008, 299, 301, ADDED | SAMPLES),
        "301 Gop/s, at the least, is more than this device can do: it multiplies and adds at 100 Gop/s",
    ),
    "shared samples": (
        *(0.1, 299, 301, ADDED | SAMPLES | {"technique": "numba_cpu_tuned"}),
        "301 Gop/s, at the least, is more than this device can do: it multiplies and adds at 100 Gop/s",
    ),
}


@pytest.mark.parametrize("metric", [Metric.RESIDENT, Metric.DEVICE, Metric.PREPARED])
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_faster_than_the_device_is_refused(name, metric):
    work, right, wrong, known, reason = IMPOSSIBLE[name]
    assert taking(work / right, metric, **known).ok
    refused = taking(work / wrong, metric, **known)
    assert (refused.status, refused.reason, refused.timings) == (Status.REFUSED, f"{metric}: {reason}", {})
    unknown = {key: value for key, value in known.items() if key in ("workload", "technique", "size")}
    assert taking(work / wrong, metric, **unknown).ok  # what a device can do is not always known


def test_one_time_that_is_impossible_costs_the_result():
    right = taking(1e-3, **COPIED)
    assert right.rates.share == pytest.approx(12)
    times = {Metric.DEVICE: Timing(1e-3), Metric.PREPARED: Timing(1e-5)}
    refused = judged(replace(right, rates=None, timings=right.timings | times))
    assert refused.status == Status.REFUSED and refused.reason.startswith("prepared: 1,200 GB/s is more than")


def test_what_fits_into_the_cache_is_not_judged_by_the_memory():
    assert taking(1e-3, **CACHED).ok and taking(1e-3, **CACHED).rates.share is None


def test_nothing_takes_less_than_an_empty_kernel():
    known = {"size": 1000, "empty_kernel": 1e-6}
    assert taking(0.26e-6, Metric.DEVICE, **known).ok and taking(0.24e-6, **known).ok
    refused = taking(0.24e-6, Metric.DEVICE, **known)
    assert refused.reason == ("device: 0.24 µs is less than this device takes for anything: an empty kernel takes 1 µs")


@pytest.mark.parametrize(
    ("math", "refused"),
    [
        *((math, True) for math in (None, "IEEE", "float32, TF32 off (PyTorch's default)")),
        *((math, False) for math in ("TF32", "float16, sums in float32", "bfloat16", "float32 of three TF32 products")),
    ],
)
def test_tensor_cores_are_faster_than_the_arithmetic_that_is_measured(math, refused):
    result = taking(1e-3, workload="matmul", size=1_000, math=math, arithmetic=100.0)
    assert (result.status == Status.REFUSED) == refused


def test_of_two_probes_the_better_figures_count():
    before, after = Probe("x", 10.0, 1000, 5.0, None, 2e-6), Probe("x", 8.0, 1000, 6.0, 4.0, 1e-6)
    assert before.better(after) == after.better(before) == Probe("x", 10.0, 1000, 6.0, 4.0, 1e-6)
    failed = Probe(failed="out of memory")
    assert before.better(failed) == failed.better(before) == before
    assert failed.better(failed) == failed


PROBED = {"copy_bandwidth", "cache_bytes", "cache_bandwidth", "arithmetic"}


@pytest.mark.parametrize("device", [Host, pytest.param(lambda: OpenCl.default(), id="OpenCl", marks=in_opencl)])
def test_a_probe_says_what_the_device_can_do(device):
    found = vars(device().probe())
    assert all(found[name] > 0 for name in PROBED - {"cache_bytes"}) and found["failed"] is None
    assert found["device"] and (found["cache_bytes"] is None or found["cache_bytes"] > 0)


@in_opencl
def test_the_kernels_of_a_probe_run_on_any_opencl_device(monkeypatch):
    monkeypatch.setattr("gpu_cookbook.run.device.COPY_BYTES", 2**24)
    found = vars(OpenCl.default().probe_kernels())
    assert all(found[name] > 0 for name in PROBED)


class Event:
    """``is_done``: whether the device has passed it already; ``ms``: when it did."""

    def __init__(self, is_done, ms):
        self.is_done, self.ms = is_done, ms

    def sync(self):
        pass

    def __sub__(self, other):
        return self.ms - other.ms


@pytest.mark.parametrize(
    ("passed", "best"),  # which of the batches begin before all of their calls are in the queue
    [((), 2e-3), ((1, 3), 2e-3), ((0, 1, 2), 3e-3), (range(10), None)],
)
def test_a_probe_counts_only_calls_of_a_full_queue(passed, best, monkeypatch):
    milliseconds = (400, 400, 200, 300, 500, 600, 600, 600, 600, 600)
    events = [Event(batch in passed, end) for batch, ms in enumerate(milliseconds) for end in (0, ms)]
    cuda, waits = object.__new__(Cuda), []
    cuda.device = SimpleNamespace(sync=lambda: None)
    monkeypatch.setattr(cuda, "spin", waits.append)
    monkeypatch.setattr(cuda, "record", lambda: events.pop(0))
    assert cuda.fastest(lambda: None, 100) == best
    assert len(waits) == min(10, 5 + len(passed)) and waits[-1] >= waits[0]


def test_a_library_that_uses_no_vectors_says_nothing_of_the_peak(monkeypatch):
    monkeypatch.setattr("gpu_cookbook.run.device.VECTORS", 1e6)
    assert Host().arithmetic() is None


def test_every_gpu_is_as_many_times_one(monkeypatch):
    one = json.dumps(vars(Probe("GPU", 1000.0, 2**20, None, 5.0, 1e-6)))
    done = SimpleNamespace(returncode=0, stdout=one)
    monkeypatch.setattr(machine, "gpus", lambda: (SimpleNamespace(name="GPU"),) * 4)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert EveryGpu().probe() == Probe("4 × GPU", 4000.0, 2**22, None, 20.0, None)
    done.returncode, done.stderr = 1, "Traceback\nRuntimeError: no memory\n"
    with pytest.raises(Unmeasurable, match="^RuntimeError: no memory$"):
        EveryGpu().probe()


SLOW = {  # what a device would have to be like for NumPy's recipes to be too fast
    "memory": ("multiply", 1_000_000, Probe("slow", 1e-3, 1000), "a copy on it runs at 0 GB/s"),
    "cache": ("multiply", 1_000_000, Probe("slow", 1e9, 10**9, 1e-3), "its cache runs at 0 GB/s"),
    "arithmetic": ("matmul", 200, Probe("slow", 1e9, 0, None, 1e-3), "it multiplies and adds at 0 Gop/s"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_compare_refuses_what_is_too_fast(name):
    workload, size, probe, reason = SLOW[name]
    (result,) = runner.run(catalogue.find(workload, "numpy"), "measure", [size], probe=probe)
    assert result.status == Status.REFUSED and result.reason.endswith(reason) and not result.timings


def test_what_the_device_can_do_is_measured_beside_each_result():
    for result in runner.run(catalogue.find("multiply", "numpy"), "measure", [1000, 40_000]):
        assert result.ok and all(getattr(result, name) for name in PROBED - {"cache_bytes"})


def test_each_probe_but_the_first_is_after_one_size_and_before_the_next(monkeypatch):
    """Unless it failed, as in a full memory."""
    failed = Probe(failed="out of memory")
    rates = [replace(PROBE, copy_bandwidth=rate) for rate in (1.0, 3.0, 2.0)]
    probes = [rates[0], failed, rates[1], rates[2], failed]
    said = []
    monkeypatch.setattr(worker, "probe", lambda device: probes.pop(0))
    monkeypatch.setattr(worker, "judged", lambda result: result)  # the probes are made up
    path = catalogue.FOLDER / "multiply" / "with_numpy.py"
    worker.compare({"path": str(path), "sizes": [100, 200, 300], "probe": None}, lambda **message: said.append(message))
    bandwidths = [message["result"]["copy_bandwidth"] for message in said if "result" in message]
    assert bandwidths == [1.0, 3.0, 2.0] and not probes


class Replayed:
    """NumPy's recipe, and a prepared() of its own."""

    def __init__(self, prepared):
        self.prepared = prepared

    def __getattr__(self, name):
        return getattr(numpy_recipe(), name)


def replays(a, b, out=None):
    out = np.empty_like(a) if out is None else out
    return lambda: np.multiply(a, b, out=out)


def replays_nothing(a, b, out=None):
    out = np.empty_like(a) if out is None else out
    return lambda: out


def replays_once(a, b, out=None):
    left = [np.multiply(a, b, out=out)]
    return lambda: left.pop() if left else np.zeros_like(a)


def takes_anything(a, b, out=None):
    return lambda: np.multiply(a, b)


def test_a_prepared_call_is_measured_and_checked():
    module = Replayed(replays)
    assert check.check_size(module, multiply, 100, Host()) is None
    assert measured(module, Host()).timings[Metric.PREPARED].count >= measure.SAMPLES


@pytest.mark.parametrize(
    ("prepared", "fault"),
    [
        (replays_nothing, "prepared: call 1: 100 of 100 elements are wrong"),
        (replays_once, "prepared: call 2: 100 of 100 elements are wrong"),
    ],
)
def test_a_prepared_call_that_does_no_work_is_found_out(prepared, fault):
    assert check.check_size(Replayed(prepared), multiply, 100, Host()).startswith(fault)
    with pytest.raises(measure.Wrong, match="^prepared: 1,000 of 1,000 elements are wrong"):
        measured(Replayed(prepared), Host())


def test_a_prepared_call_refuses_what_the_function_refuses():
    assert check.check_refusals(Replayed(takes_anything), multiply) == ("prepared: shapes (3,) and (4,): no ValueError")


def test_what_prepared_does_by_itself_is_found_out():
    def eager(a):
        a += 1
        return lambda: in_place(a)

    module = incremented(in_place)
    module.upload = lambda *arrays: tuple(np.array(x) for x in arrays)
    module.prepared = eager
    fault = check.check_prepared(module, increment, 257, increment.inputs(257), Host())
    assert fault.startswith("call 1: 257 of 257 elements are wrong")
    module.prepared = lambda a: lambda: in_place(a)
    assert check.check_prepared(module, increment, 257, increment.inputs(257), Host()) is None


def test_transfers_from_page_locked_arrays_are_measured_where_these_make_a_difference():
    module = SimpleNamespace(**vars(numpy_recipe()), pinned=lambda shape: np.empty(shape, np.float32))
    device = Clock(1e-9)
    assert Metric.PINNED not in measured(module, device).timings
    device.page_locks = True
    assert measured(module, device).timings[Metric.PINNED].count >= measure.SAMPLES


def test_an_upload_that_does_more_than_that_is_not_measured(monkeypatch):
    assert Metric.TRANSFER in measured(numpy_recipe(), Host()).timings
    monkeypatch.setattr(multiply, "GIVEN", "with a file", raising=False)
    assert Metric.TRANSFER not in measured(numpy_recipe(), Host()).timings


def test_no_argument_is_given_other_values_if_one_cannot_be():
    strings, values = np.array([b"7", b"8"]), np.zeros(2)
    assert not memory.fill((strings, values), (np.ones(2), np.ones(2)))
    assert memory.fill((np.zeros(2), values), (np.ones(2), np.ones(2)))
    assert values.tolist() == [1, 1]
    values[:] = 0
    assert not memory.fill((values, strings), (np.ones(2), np.ones(2)))
    assert not values.any()


class TimedOnce:
    """NumPy's recipe, but from the second call on nothing is computed any more."""

    def __init__(self):
        self.calls = 0

    def __getattr__(self, name):
        return getattr(numpy_recipe(), name)

    def multiply(self, a, b, out=None):
        self.calls += 1
        if self.calls > 1:
            return np.empty_like(a) if out is None else out
        return numpy_recipe().multiply(a, b, out)


class WrongInAQueue(Clock):
    """A device on which the calls that are not waited for leave the result as it was."""

    def __init__(self, recipe):
        super().__init__(1e-9)
        self.recipe = recipe

    def device_times(self, call, wall):
        self.recipe.calls = 1
        return super().device_times(call, wall)


def test_the_output_of_the_calls_in_the_queue_is_checked_too():
    recipe = TimedOnce()
    recipe.calls = -1_000_000
    with pytest.raises(measure.Wrong, match=r"^with the queue kept full: 1,000 of 1,000 elements are wrong"):
        measured(recipe, WrongInAQueue(recipe))


def test_the_output_of_the_timed_calls_is_checked_too():
    with pytest.raises(measure.Wrong, match=r"^1,000 of 1,000 elements are wrong"):
        measured(TimedOnce(), Host())

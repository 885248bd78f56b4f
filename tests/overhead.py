"""What the harness adds to a call that does nothing: ``python tests/overhead.py``.

Each timed call of idle/multiply/with_nothing.py is compared with the same call in a bare loop, in turns, in one
process.
"""

from pathlib import Path
from statistics import median
from time import perf_counter

from gpu_cookbook import catalogue
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.run.measure import PAGEABLE, Calls, sample

RECIPE = Path(__file__).parent / "idle" / "multiply" / "with_nothing.py"
SIZE, TIMES = 1_000, 10


def main():
    module = Loader(catalogue.read(RECIPE)).execute()
    calls = Calls(module, catalogue.workload_module("multiply"), SIZE)
    calls.verify = lambda turn: None  # every answer is wrong
    added = {"resident": [], "prepared": [], "transfer": []}
    taken = 0
    for _ in range(TIMES):
        calls.begin(poisoned=True)
        ours = sample(calls.synchronised, calls.turn)
        arguments, options = calls.now.arguments, calls.now.options
        added["resident"].append(median(ours) - median(resident(module, arguments, options, len(ours))))
        taken += len(ours)
        calls.prepare()
        ours = sample(calls.replayed, calls.turn)
        added["prepared"].append(median(ours) - median(prepared(module, calls.now.replay, len(ours))))
        calls.begin(host=PAGEABLE)
        ours = sample(calls.there_and_back, calls.turn)
        added["transfer"].append(median(ours) - median(transfer(module, calls.now.arguments, len(ours))))
    for metric, seconds in added.items():
        print(f"{metric}: the harness adds {round(1e9 * median(seconds))} ns to a call")
    print(f"Medians of {taken:,} calls each, and of as many in a bare loop.")


def resident(module, arguments, options, count):
    """The seconds of so many calls in a bare loop, as of those below."""
    function, wait = module.multiply, module.wait
    times = []
    for _ in range(count):
        start = perf_counter()
        wait(function(*arguments, **options))
        end = perf_counter()
        times.append(end - start)
    return times


def prepared(module, replay, count):
    wait = module.wait
    times = []
    for _ in range(count):
        start = perf_counter()
        wait(replay())
        end = perf_counter()
        times.append(end - start)
    return times


def transfer(module, arguments, count):
    round_trip = module.round_trip
    times = []
    for _ in range(count):
        start = perf_counter()
        round_trip(*arguments)
        end = perf_counter()
        times.append(end - start)
    return times


if __name__ == "__main__":
    main()

"""What each recipe of training learns: ``python tests/accuracy.py``.

A row is one pass over the images of a published size, by one recipe that runs here, in a process of its own: the share
of the images that it named right, each before it was trained on, and the mean loss of the first and of the last tenth
of the steps. NumPy takes minutes for 60,000 images, and is run only if it is named.

``--passes 10``: ten of them, one after another over the same images. The share is then that of the last pass, in which
every image was seen before. The time is that of all passes, with the images on the device before and without what a
first call takes.
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.run.precision import workload_for


def learned(technique: str, size: tuple[int, int], passes: int) -> dict[str, float]:
    """The accuracy of the last pass, the mean loss of the first and of the last tenth of all steps, and the seconds."""
    (recipe,) = catalogue.choose(["training"], [technique])
    module = Loader(recipe).execute()
    images, targets, weights = workload_for(recipe).inputs(size)

    def losses_and_share(count):
        given = module.upload(*(np.concatenate([each] * count) for each in (images, targets)), weights)
        start = time.perf_counter()
        result = module.training(*given)
        module.wait(result)
        took = time.perf_counter() - start
        *losses, share = np.asarray(module.download(result), np.float64)
        return losses, share, took

    before = losses_and_share(passes - 1)[1] if passes > 1 else 0  # the same steps, but for those of the last pass
    losses, share, took = losses_and_share(passes)
    tenth = -(-len(losses) // 10)
    return {
        "accuracy": share * passes - before * (passes - 1),
        "first": np.mean(losses[:tenth]),
        "last": np.mean(losses[-tenth:]),
        "took": took,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("techniques", nargs="*", help="if omitted, all that run here but numpy")
    parser.add_argument("--images", type=int, help="only the sizes with so many images")
    parser.add_argument("--passes", type=int, default=1, help="how many, one after another (default: 1)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        technique, size = json.loads(options.one)
        print(json.dumps(learned(technique, tuple(size), options.passes)))
        return
    if options.passes < 1:
        parser.error("--passes takes 1 or more")
    workload = catalogue.workload_module("training")
    try:
        chosen = catalogue.choose(["training"], options.techniques)
    except catalogue.UnknownName as error:
        parser.error(str(error))
    here = [recipe for recipe in chosen if not machine.obstacle(recipe)]
    sizes = [size for size in workload.SIZES if options.images in (None, size[0])]
    if not sizes:
        parser.error(f"no size has {options.images:,} images")
    print("| recipe | images | right | loss, first tenth | loss, last tenth | seconds |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for technique in [recipe.technique for recipe in here if options.techniques or recipe.technique != "numpy"]:
        for size in sizes:
            words = ["--passes", str(options.passes), "--one", json.dumps([technique, size])]
            done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True)
            if done.returncode:
                print(f"{technique}, {workload.label(size)}: {done.stderr[-1000:]}", file=sys.stderr)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            losses = f"{found['first']:.3f} | {found['last']:.3f}"
            took = f"{found['took']:.2f}" if options.passes > 1 else "–"
            right = f"{100 * found['accuracy']:.1f} %"
            print(f"| {technique} | {workload.label(size)} | {right} | {losses} | {took} |", flush=True)


if __name__ == "__main__":
    main()

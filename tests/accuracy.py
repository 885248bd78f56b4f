"""What each recipe of training learns: ``python tests/accuracy.py``.

A row is one pass over the images of a published size, by one recipe that runs here, in a process of its own: the share
of the images that it named right, each before it was trained on, and the mean loss of the first and of the last tenth
of the steps. NumPy takes minutes for 60,000 images, and is run only if it is named.
"""

import argparse
import json
import subprocess
import sys

import numpy as np

from gpu_cookbook import catalogue, machine
from gpu_cookbook.run.loader import Loader
from gpu_cookbook.run.precision import workload_for


def learned(technique: str, size: tuple[int, int]) -> dict[str, float]:
    """The accuracy of a pass, and the mean loss of its first and of its last tenth."""
    (recipe,) = catalogue.choose(["training"], [technique])
    module = Loader(recipe).execute()
    result = module.training(*module.upload(*workload_for(recipe).inputs(size)))
    module.wait(result)
    *losses, accuracy = np.asarray(module.download(result), np.float64)
    tenth = -(-len(losses) // 10)
    return {"accuracy": accuracy, "first": np.mean(losses[:tenth]), "last": np.mean(losses[-tenth:])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("techniques", nargs="*", help="if omitted, all that run here but numpy")
    parser.add_argument("--images", type=int, help="only the sizes with so many images")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        technique, size = json.loads(options.one)
        print(json.dumps(learned(technique, tuple(size))))
        return
    workload = catalogue.workload_module("training")
    try:
        chosen = catalogue.choose(["training"], options.techniques)
    except catalogue.UnknownName as error:
        parser.error(str(error))
    here = [recipe for recipe in chosen if not machine.obstacle(recipe)]
    sizes = [size for size in workload.SIZES if options.images in (None, size[0])]
    if not sizes:
        parser.error(f"no size has {options.images:,} images")
    print("| recipe | images | right | loss, first tenth | loss, last tenth |")
    print("| --- | --- | ---: | ---: | ---: |")
    for technique in [recipe.technique for recipe in here if options.techniques or recipe.technique != "numpy"]:
        for size in sizes:
            command = [sys.executable, __file__, "--one", json.dumps([technique, size])]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"{technique}, {workload.label(size)}: {done.stderr[-1000:]}", file=sys.stderr)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            losses = f"{found['first']:.3f} | {found['last']:.3f}"
            print(f"| {technique} | {workload.label(size)} | {100 * found['accuracy']:.1f} % | {losses} |", flush=True)


if __name__ == "__main__":
    main()

"""What asv installs into its environments: ``python benchmarks/install.py WHEEL`` (see asv.conf.json).

The wheel of the commit that is measured, with the frameworks that fit this machine's driver, which make knows.
"""

import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    wheels = [path for path in map(Path, sys.argv[1:]) if path.suffix == ".whl" and path.is_file()]
    if len(sys.argv) != 2 or not wheels:  # pip would take any other word for a package, and install that
        sys.exit("Name one wheel that exists, as asv does: python benchmarks/install.py WHEEL")
    root = str(Path(__file__).parents[1])
    extra = subprocess.check_output(["make", "--silent", "--directory", root, "extra"], text=True).strip()
    sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", f"{sys.argv[1]}[{extra}]"]))

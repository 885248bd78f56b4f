"""What asv installs into its environments: ``python benchmarks/install.py WHEEL`` (see asv.conf.json).

The wheel of the commit that is measured, with the frameworks that fit this machine's driver, which make knows.
"""

import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    root = str(Path(__file__).parents[1])
    extra = subprocess.check_output(["make", "--silent", "--directory", root, "extra"], text=True).strip()
    sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", f"{sys.argv[1]}[{extra}]"]))

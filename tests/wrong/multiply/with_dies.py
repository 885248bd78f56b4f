"""Wrong: it is killed, and leaves a process in a session of its own.

Framework: NumPy
Runs on: CPU
Install: pip install numpy
"""

import os
import signal
import subprocess
from pathlib import Path

import numpy as np


def upload(*arrays):
    return tuple(np.asarray(x, np.float32, order="C") for x in arrays)


def multiply(a, b):
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    Path(os.environ["CHILD"]).write_text(str(child.pid))
    os.kill(os.getpid(), signal.SIGKILL)


def wait(c):
    pass


def download(c):
    return c.copy()

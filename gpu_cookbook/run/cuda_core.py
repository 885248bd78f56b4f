"""cuda-core under the names that it has today. Its last version for CUDA 11, 0.3, calls some of them otherwise."""

try:
    from cuda.core import LEGACY_DEFAULT_STREAM, Device, EventOptions, LaunchConfig, Program, ProgramOptions, launch

    TIMED = EventOptions(timing_enabled=True)
except ModuleNotFoundError:  # there is no cuda-core
    raise
except ImportError:
    from cuda.core.experimental import Device, EventOptions, LaunchConfig, Program, ProgramOptions, launch
    from cuda.core.experimental._stream import LEGACY_DEFAULT_STREAM

    TIMED = EventOptions(enable_timing=True)

__all__ = ["LEGACY_DEFAULT_STREAM", "TIMED", "Device", "LaunchConfig", "Program", "ProgramOptions", "launch"]

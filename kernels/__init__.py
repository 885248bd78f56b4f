"""The device code: CUDA C (.cu) and OpenCL C (.cl), one source for every recipe that can use it."""

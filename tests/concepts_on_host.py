"""The kernels of docs/concepts on the CPU: g++ compiles them, and a thread of the host is one of each block."""

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np

AROUND = """
#include <barrier>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

struct Place { unsigned int x; };
struct float4 { float x, y, z, w; };
static thread_local Place threadIdx, blockIdx;
static Place blockDim;
static std::unique_ptr<std::barrier<>> together;
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __syncthreads() together->arrive_and_wait()
template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }

KERNELS

template <class T> T as(void *argument)
{
    T value;
    std::memcpy(&value, argument, sizeof value);
    return value;
}

template <class... T, std::size_t... I>
void run(void (*kernel)(T...), std::index_sequence<I...>, unsigned int blocks, unsigned int size, void **arguments)
{
    blockDim.x = size;
    together = std::make_unique<std::barrier<>>(size);
    std::vector<std::thread> threads;
    for (unsigned int number = 0; number < size; number++)
        threads.emplace_back([=] {
            threadIdx.x = number;
            for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
                kernel(as<T>(arguments[I])...);
                together->arrive_and_wait();
            }
        });
    for (auto &thread : threads)
        thread.join();
}

template <class... T> void run_all(void (*kernel)(T...), unsigned int blocks, unsigned int size, void **arguments)
{
    run(kernel, std::index_sequence_for<T...>(), blocks, size, arguments);
}
"""
START = 'extern "C" void run_{0}(unsigned int blocks, unsigned int size, void **arguments)'


class Host:
    """What benchmarks/concepts.py has of a GPU. The times are made up."""

    multiprocessors, threads, shared, reserved = 2, 1024, 228 * 1024, 1024

    def __init__(self, kernels, folder):
        self.kernels, self.folder, self.built, self.asked = kernels, Path(folder), {}, []

    def upload(self, array):
        return np.array(array)

    def unwritten(self, count, dtype):
        return np.full(count * np.dtype(dtype).itemsize, 255, np.uint8).view(dtype)

    def write(self, array, values):
        array[:] = values

    def download(self, array):
        return array.copy()

    def address(self, array):
        return array.ctypes.data

    def compiled(self, file):
        if file not in self.built:
            text = (self.kernels / file).read_text(encoding="utf-8")
            names = re.findall(r'extern "C" __global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(', text)
            starts = [f"{START.format(name)} {{ run_all({name}, blocks, size, arguments); }}" for name in names]
            source = self.folder / f"{file}.cpp"
            source.write_text("\n".join([AROUND.replace("KERNELS", text), *starts]), encoding="utf-8")
            made = source.with_suffix(".so")
            command = ["g++", "-std=c++20", "-shared", "-fPIC", "-pthread", "-o", made, source]
            subprocess.run(command, check=True, capture_output=True, text=True)
            self.built[file] = ctypes.CDLL(str(made))
        return self.built[file]

    def launcher(self, file, name, blocks, threads, *arguments, shared=0, full=False):
        start = self.compiled(file)[f"run_{name}"]
        values = [np.array(each.ctypes.data if each.ndim else each) for each in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(each.ctypes.data for each in values))
        self.asked.append((name, blocks, shared))

        def launch(kept=(arguments, values)):
            start(ctypes.c_uint(blocks), ctypes.c_uint(threads), pointers)

        return launch

    def times(self, call):
        call()
        return [1e-3, 1.1e-3, 1.2e-3]

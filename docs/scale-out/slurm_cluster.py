"""Dask workers as Slurm jobs, with one GPU per job. Prints the job script, and submits it if Slurm is there.

Install: pip install dask-jobqueue "dask-cuda[cu13]"
Run: python slurm_cluster.py ib0
"""

import shutil
import sys

from dask_jobqueue import SLURMCluster
from distributed import Client

if __name__ == "__main__":
    interface = sys.argv[1] if len(sys.argv) > 1 else "lo"  # the network of the compute nodes; lo reaches none of them
    cluster = SLURMCluster(
        queue="gpu",
        cores=1,  # threads per worker: one, so that only one task at a time uses the GPU
        job_cpu=8,
        processes=1,
        memory="64 GB",
        walltime="01:00:00",
        interface=interface,
        job_extra_directives=["--gres=gpu:1"],
        worker_command="dask_cuda.cli",
        worker_extra_args=["--resources", "GPU=1", "--dashboard-address", "127.0.0.1:0"],
        scheduler_options={"dashboard_address": "127.0.0.1:0"},
        shared_temp_directory=".",  # for the certificate; it must be on a file system that the nodes share
        security=True,  # TLS with a temporary certificate
    )
    with cluster:
        print(cluster.job_script())
        if not shutil.which("sbatch"):
            raise SystemExit("sbatch is not on PATH: the job script above was not submitted")
        cluster.scale(jobs=2)
        with Client(cluster) as client:
            client.wait_for_workers(2, timeout=600)
            total = client.submit(sum, range(10), resources={"GPU": 1}).result()

    assert total == 45
    print("two GPU workers through Slurm, all right")

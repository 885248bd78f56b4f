"""Two GPU workers in Kubernetes, started by the Dask operator from the manifest beside this file.

Install: pip install dask-kubernetes
Run: python kubernetes_cluster.py IMAGE
"""

import sys
from pathlib import Path

import yaml
from dask_kubernetes.operator import KubeCluster
from distributed import Client

if __name__ == "__main__":
    manifest = Path(__file__).with_suffix(".yaml").read_text().replace("IMAGE", sys.argv[1])
    with KubeCluster(custom_cluster_spec=yaml.safe_load(manifest)) as cluster, Client(cluster) as client:
        client.wait_for_workers(2, timeout=600)
        total = client.submit(sum, range(10), resources={"GPU": 1}).result()

    assert total == 45
    print("two GPU workers in Kubernetes, all right")

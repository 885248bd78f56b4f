"""TLS in a cluster on this machine, with a certificate that is made for it and kept only in memory.

Install: pip install cryptography
Run: python tls_on_this_machine.py
"""

from distributed import Client, LocalCluster, Security

if __name__ == "__main__":
    with (
        LocalCluster(n_workers=1, security=Security.temporary(), dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        address = cluster.scheduler_address
        total = client.submit(sum, range(10)).result(timeout=30)

    assert total == 45
    assert address.startswith("tls://127.0.0.1:"), address
    print(f"TLS with a temporary certificate at {address}, all right")

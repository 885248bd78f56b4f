"""A client of a scheduler that uses TLS, with the certificates from a folder.

Run: python tls_client.py tls://127.0.0.1:8786 certificates
"""

import sys
from pathlib import Path

from distributed import Client, Security

if __name__ == "__main__":
    address, folder = sys.argv[1], Path(sys.argv[2])
    security = Security(
        tls_ca_file=str(folder / "ca.pem"),
        tls_client_cert=str(folder / "cert.pem"),
        tls_client_key=str(folder / "key.pem"),
        require_encryption=True,
    )
    with Client(address, security=security, timeout=10) as client:
        total = client.submit(sum, range(10)).result(timeout=30)
        workers = client.scheduler_info(-1)["workers"]

    assert total == 45
    assert all(worker.startswith("tls://") for worker in [address, *workers]), workers
    print(f"TLS to the scheduler and {len(workers)} worker(s), all right")

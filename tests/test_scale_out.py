"""The pages and scripts of docs/scale-out: their commands are run, with schedulers and workers on 127.0.0.1.

A block of commands that needs what a test machine has not says so in a comment before it. Every other one is run here:
servers in the background, with free ports in the place of the page's, and all else to its end.
"""

import ast
import contextlib
import importlib.util
import ipaddress
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from conftest import HANG, until

DOCS = Path(__file__).parents[1] / "docs" / "scale-out"
PAGES = sorted(DOCS.glob("*.md"))
SCRIPTS = sorted(DOCS.glob("*.py"))
NEEDS = {"needs a GPU", "needs Slurm", "needs Kubernetes", "needs several machines"}
SERVERS = ("dask scheduler", "dask worker", "dask cuda worker", "ray start")

# A script whose package may not be there; it then has a skip of its own below.
PACKAGES = {"tls_on_this_machine.py": "cryptography", "ray_resources.py": "ray", "numba_on_workers.py": "numba"}

# Which device a kernel runs on is not the question here: Numba's simulator runs it everywhere.
ENVIRONMENT = os.environ | {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "NUMBA_ENABLE_CUDASIM": "1",
}


def blocks(page, language):
    """(what the block needs, its text) of each fenced block of that language."""
    found = re.findall(
        rf"^(?:<!-- ([^\n]*) -->\n)?```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL
    )
    return [(needs or None, text) for needs, text in found]


def commands(text):
    """The commands of a block, each in one line."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


RUN = [page.name for page in PAGES if any(needs is None for needs, _ in blocks(page, "sh"))]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def beyond_loopback(addresses):
    def loopback(address):
        ip = ipaddress.ip_address(address)
        return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback

    return [address for address in addresses if not loopback(address)]


class Shell:
    """Runs a page's commands in one folder; close() ends the servers that it started."""

    def __init__(self, folder):
        self.folder, self.servers, self.exports, self.ports = folder, [], [], {}
        self.short = tempfile.mkdtemp(prefix="s")  # Ray's sockets are in it, and their names end at 107 characters
        self.environment = ENVIRONMENT | {"HOME": str(folder), "TMPDIR": self.short}
        for script in SCRIPTS:
            shutil.copy(script, folder)

    def local(self, text):
        """With ports of our own in the place of the page's."""
        for port in re.findall(r"\b(?:8786|8787|6379)\b", text):
            self.ports.setdefault(port, free_port())
        return re.sub(r"\b(?:8786|8787|6379)\b", lambda match: str(self.ports[match[0]]), text)

    def script(self, text):
        return "\n".join(["set -e", *self.exports, self.local(text)])

    def run(self, text, timeout=HANG):
        return subprocess.run(
            ["bash", "-c", self.script(text)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def start(self, command):
        log = (self.folder / f"server-{len(self.servers)}.log").open("w")
        self.servers.append(
            psutil.Popen(
                ["bash", "-c", self.script(f"exec {command}")],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        )
        log.close()
        if port := re.search(r"--port (\d+)", self.local(command)):
            until(lambda: self.answers(int(port[1])) or self.servers[-1].poll() is not None)
            assert self.servers[-1].poll() is None, f"{command}\n{self.logs()}"
        if command.startswith("dask worker"):  # or those that came first do all the work
            until(lambda: "Registered to:" in Path(log.name).read_text() or self.servers[-1].poll() is not None)

    @staticmethod
    def answers(port):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    def page(self, name):
        for needs, text in blocks(DOCS / name, "sh"):
            if needs:
                continue
            batch = []
            for command in [*commands(text), None]:
                if command and not command.startswith(SERVERS):
                    batch.append(command)
                    continue
                batch = [line for line in batch if self.can_run(line)]
                if batch:
                    done = self.run("\n".join(batch))
                    assert done.returncode == 0, f"{name}: {batch}\n{done.stdout}{done.stderr}\n{self.logs()}"
                    self.exports += [line for line in batch if line.startswith("export ")]
                batch = []
                if command:
                    self.start(command)

    @staticmethod
    def can_run(command):
        return all(script not in command or importlib.util.find_spec(package) for script, package in PACKAGES.items())

    def logs(self):
        rays = Path(self.short).glob("ray/session_latest/logs/*")
        servers = [*sorted(self.folder.glob("server-*.log")), *sorted(path for path in rays if path.is_file())]
        return "\n".join(f"{path.name}:\n{path.read_text(errors='replace')[-3_000:]}" for path in servers)

    def processes(self):
        return [p for server in self.servers if server.is_running() for p in [server, *server.children(recursive=True)]]

    def listening(self):
        """{address: the command that listens there}, of the servers and of the processes that they started."""
        found = {}
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                for connection in process.net_connections("inet"):
                    if connection.status == psutil.CONN_LISTEN:
                        found.setdefault(connection.laddr.ip, []).append(" ".join(process.cmdline())[:100])
        return found

    def close(self):
        mine = self.processes()
        for server in reversed(self.servers):  # a worker ends at once while its scheduler is there
            with contextlib.suppress(psutil.NoSuchProcess):
                server.terminate()
            psutil.wait_procs([server], timeout=10)
        _, alive = psutil.wait_procs(mine, timeout=5)
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(alive, timeout=HANG)
        shutil.rmtree(self.short, ignore_errors=True)
        assert not [process for process in mine if process.is_running()], "a process is left behind"


@pytest.fixture
def shell(tmp_path):
    shell = Shell(tmp_path)
    yield shell
    shell.close()


def check_ports(shell):
    listening = shell.listening()
    assert listening, "the servers listen nowhere"
    assert not beyond_loopback(listening), {address: listening[address] for address in beyond_loopback(listening)}


STEPS = """
import sys
from distributed import Client

def steps(dask_worker):
    executed = [str(entry[0]) for entry in dask_worker.state.log if entry[2:4] == ("executing", "executing")]
    return dask_worker.name, sorted({step for step in ("load", "gpu_step") for key in executed if step in key})

with Client(sys.argv[1]) as client:
    print(dict(client.run(steps).values()))
"""


@pytest.mark.slow
def test_resources_and_a_numba_kernel(shell):
    shell.page("resources.md")
    (shell.folder / "steps.py").write_text(STEPS)
    asked = shell.run("python steps.py tcp://127.0.0.1:8786")
    assert asked.returncode == 0, asked.stderr
    ran = eval(asked.stdout)
    assert "gpu_step" in ran["gpu"], ran
    assert ran["cpu"] == ["load"], ran
    shell.page("numba-kernel.md")
    check_ports(shell)


ANNOTATED = """
import sys
import dask, dask.array as da
from distributed import Client
from gpu_steps_on_gpu_workers import gpu_step

with Client(sys.argv[1]) as client:
    client.wait_for_workers(2, timeout=60)  # of each kind one: alone, the first to come would do all steps
    client.upload_file("gpu_steps_on_gpu_workers.py")
    x = da.arange(100, chunks=1)
    with dask.annotate(resources={"GPU": 1}):
        x = x.map_blocks(gpu_step, dtype=x.dtype)
    with dask.config.set({"optimization.fuse.active": False, "optimization.annotations.fuse": False}):
        assert x.sum().compute() == 9_900
"""


@pytest.mark.slow
@pytest.mark.parametrize("set_by", ["the client", "the scheduler"])
def test_annotations_of_arrays(shell, set_by):
    (shell.folder / "annotated.py").write_text(ANNOTATED)
    servers, setting = (
        commands(next(text for _, text in blocks(DOCS / "resources.md", "sh") if word in text))
        for word in ("--resources", "DASK_OPTIMIZATION")
    )
    if set_by == "the scheduler":
        shell.exports += setting
    for command in servers:
        shell.start(command)
    done = shell.run("python annotated.py tcp://127.0.0.1:8786")
    if set_by == "the scheduler":
        assert done.returncode == 0, done.stderr
    else:
        assert "AssertionError: a GPU step ran on cpu" in done.stderr


@pytest.mark.slow
def test_workers_by_hand(shell):
    shell.page("dask-cuda-workers.md")
    check_ports(shell)


STRANGERS = """
import sys
from distributed import Client, Security

address, ours, other = sys.argv[1:]
strangers = {
    "no certificate": (address, None),
    "another authority": (address, Security(
        tls_ca_file=f"{other}/ca.pem", tls_client_cert=f"{other}/cert.pem", tls_client_key=f"{other}/key.pem")),
    "a certificate of another authority": (address, Security(
        tls_ca_file=f"{ours}/ca.pem", tls_client_cert=f"{other}/cert.pem", tls_client_key=f"{other}/key.pem")),
    "no TLS": (address.replace("tls://", "tcp://"), None),
}
for who, (where, security) in strangers.items():
    try:
        Client(where, security=security, timeout=300)
    except Exception as error:
        print(f"{who}: {type(error).__name__}: {error}".replace("\\n", " "))
    else:
        sys.exit(f"{who}: was let in")
"""


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not on PATH")
def test_tls(shell):
    shell.page("tls.md")
    (shell.folder / "strangers.py").write_text(STRANGERS)
    authority = next(text for _, text in blocks(DOCS / "tls.md", "sh") if "openssl" in text)
    made = shell.run(authority.replace("certificates", "others"))
    assert made.returncode == 0, made.stderr
    for key in (shell.folder / "certificates").glob("*key.pem"):
        assert key.stat().st_mode & 0o077 == 0, key
    done = shell.run("python strangers.py tls://127.0.0.1:8786 certificates others")
    assert done.returncode == 0, done.stdout + done.stderr
    for said in (
        "no certificate: TypeError: TLS expects a `ssl_context` argument",
        "another authority: FatalCommClosedError: TLS certificate does not match. Check your security settings.",
        "a certificate of another authority: ",  # which error depends on who closes first; the log below is certain
        "no TLS: CommClosedError",
    ):
        assert said in done.stdout, done.stdout
    assert "TLS handshake failed" in shell.logs()
    assert "CERTIFICATE_VERIFY_FAILED" in shell.logs()
    check_ports(shell)


def test_no_page_changes_the_umask_of_its_readers_shell(shell):
    for page in PAGES:
        for needs, text in blocks(page, "sh"):
            if "umask" in text and not needs:
                made = "\n".join(line for line in commands(text) if not line.startswith(SERVERS))
                done = shell.run(f"umask 022\nopenssl() {{ :; }}\n{made}\numask")
                assert done.stdout.endswith("0022\n"), f"{page.name}: {done.stdout}{done.stderr}"


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("cryptography"), reason="cryptography is not installed")
def test_a_temporary_certificate(shell):
    done = shell.run("python tls_on_this_machine.py")
    assert done.returncode == 0, done.stderr


# Ray 2.60 itself once aborted here: a worker found one of its C++ mutexes overwritten, and its task was not tried again
# in time. The page is then tried once more, in a new cluster; whatever else goes wrong fails at once.
@pytest.mark.flaky(reruns=1, only_rerun=r"mutex\.cc.* Mutex corrupt")
@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="ray is not installed")
def test_ray(shell):
    shell.page("ray.md")
    check_ports(shell)
    shell.exports.append("export RAY_AUTH_TOKEN=wrong RAY_NUM_REDIS_GET_RETRIES=2")  # else it tries for 20 s
    refused = shell.run("python ray_resources.py 127.0.0.1:6379")
    assert refused.returncode != 0
    assert "ConnectionError: Failed to connect to Ray cluster" in refused.stderr


def test_every_page_is_run():
    assert set(RUN) == {"dask-cuda-workers.md", "numba-kernel.md", "ray.md", "resources.md", "tls.md"}


@pytest.mark.skipif(not importlib.util.find_spec("dask_jobqueue"), reason="dask-jobqueue is not installed")
def test_the_job_script(shell):
    if shutil.which("sbatch"):
        pytest.skip("a job script is shown only where sbatch is not on PATH")
    done = shell.run("python slurm_cluster.py")
    assert "#SBATCH --gres=gpu:1" in done.stdout
    assert "sbatch is not on PATH" in done.stderr


def test_ucx_says_what_is_missing():
    done = subprocess.run(
        [sys.executable, "-S", "-E", DOCS / "ucx_against_tcp.py"], capture_output=True, text=True, timeout=HANG
    )  # -S: nothing that is installed is there
    assert done.returncode == 1
    assert done.stderr == 'distributed_ucxx is not installed: pip install "distributed-ucxx-cu13"\n'


def test_the_servers_have_these_options():
    for command in SERVERS:
        if command == "dask cuda worker" and not importlib.util.find_spec("dask_cuda"):
            continue
        if command == "ray start" and not importlib.util.find_spec("ray"):
            continue
        lines = [
            line
            for page in PAGES
            for _, text in blocks(page, "sh")
            for line in commands(text)
            if line.startswith(command)
        ]
        shown = subprocess.run(
            [*command.split(), "--help"], env=ENVIRONMENT, capture_output=True, text=True, timeout=HANG
        )
        assert shown.returncode == 0, shown.stderr
        used = {option for line in lines for option in re.findall(r"(?<=\s)--[a-z-]+", line)}
        assert used, command
        assert used <= set(re.findall(r"--[a-z-]+", shown.stdout)), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page):
    text = page.read_text()
    assert text.startswith("# ")
    if page.name == "index.md":
        assert {name for name in re.findall(r"\(([\w-]+\.md)\)", text)} == {p.name for p in PAGES} - {"index.md"}
    else:
        assert re.match(r"(Tried|Not run here): ", text.strip().split("\n\n")[-1])
    fences = re.findall(r"^```(\S*)$", text, re.MULTILINE)
    assert set(fences) <= {"", "sh", "python", "yaml", "text", "{toctree}"}
    assert fences[1::2] == [""] * (len(fences) // 2), "a block without a language, or without an end"
    assert {needs for needs, _ in blocks(page, "sh")} <= NEEDS | {None}
    for _, code in blocks(page, "python"):
        compile(code, page.name, "exec")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert target.startswith("https://") or (page.parent / target).exists(), target
    prose = [line for line in text.splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= 120, max(prose, key=len)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script(script):
    """Of those that are never run here it is all that can be known: they are Python, and check what they print."""
    source = script.read_text()
    compile(source, script.name, "exec")
    assert any(f"]({script.name})" in page.read_text() for page in PAGES), "no page has it"
    *_, main = ast.parse(source).body
    if '__name__ == "__main__"' in source:
        assert any(isinstance(node, ast.Assert) for node in ast.walk(main))
        assert source.strip().splitlines()[-1].lstrip().startswith("print(")


def test_scripts_that_no_page_runs_here_say_why():
    needed = {
        name: needs
        for page in PAGES
        for needs, text in blocks(page, "sh")
        for name in re.findall(r"python (\w+\.py)", text)
        if needs and (DOCS / name).exists()
    }
    assert needed == {
        "cudf_dataframe.py": "needs a GPU",
        "kubernetes_cluster.py": "needs Kubernetes",
        "slurm_cluster.py": "needs Slurm",
        "ucx_against_tcp.py": "needs a GPU",
    }


def test_which_addresses_are_beyond_loopback():
    assert beyond_loopback(["127.0.0.1", "::1", "::ffff:127.0.0.1", "127.0.1.1"]) == []
    others = ["0.0.0.0", "::", "192.0.2.2", "::ffff:192.0.2.2"]
    assert beyond_loopback(others) == others

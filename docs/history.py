"""asv's own pages of the stored results, made to work without a network: ``python docs/history.py FOLDER``

``asv publish`` makes pages that load nine scripts and a style sheet from other hosts, and asv has no option against
that. Up to 0.5.1 asv shipped those files itself, so they are taken out of that version's archive: pip downloads it
once into .asv/www, if it has the SHA-256 that is pinned here, and nothing of it is installed. Look at the pages with
``python -m http.server -d FOLDER``: a browser does not let them read their data from a file:// address.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from asv import config, repo, results, util
from asv.commands.publish import Publish

from gpu_cookbook.store import door
from gpu_cookbook.store.commits import git

ROOT = Path(__file__).resolve().parents[1]
ARCHIVE = ROOT / ".asv" / "www" / "asv-0.5.1.tar.gz"
SHA256 = "805fc3cc46c0bcf3e7baeaa16a12e4b92f1276c25490db4cb80fc541afa52bfc"
LIBRARIES = {  # the end of the address in a page of asv 0.6.6 -> the file in asv/www/vendor of 0.5.1
    "/jquery-3.3.1.min.js": "jquery-3.3.1.min.js",
    "/flot/0.8.3/jquery.flot.min.js": "jquery.flot-0.8.3.min.js",
    "/flot/0.8.3/jquery.flot.time.min.js": "jquery.flot-0.8.3.time.min.js",
    "/flot/0.8.3/jquery.flot.selection.min.js": "jquery.flot-0.8.3.selection.min.js",
    "/flot/0.8.3/jquery.flot.categories.min.js": "jquery.flot-0.8.3.categories.min.js",
    "/flot-orderbars@1.0.0/js/jquery.flot.orderBars.js": "jquery.flot.orderBars.js",
    "/stupidtable/1.0.1/stupidtable.min.js": "stupidtable.js",
    "/blueimp-md5/2.19.0/js/md5.min.js": "md5.js",
    "/bootstrap@3.1.1/dist/js/bootstrap.min.js": "bootstrap-3.1.0.min.js",
    "/bootstrap@3.1.1/dist/css/bootstrap.min.css": "bootstrap-3.1.0.min.css",
}
FOREIGN = re.compile(r'<(script|link)\b[^>]*?\b(?:src|href)="((?:https?:)?//[^"]*)"[^>]*>')
LOCAL = {
    "script": '<script src="vendor/{}" onerror="js_load_failure()">',
    "link": '<link rel="stylesheet" href="vendor/{}">',
}
GUARD = ("var sortMethod = sortFns[datatype];", "if (!sortFns) return;\n      var sortMethod = sortFns[datatype];")


def main(folder):
    if folder.exists() and not (folder / "asv_ui.js").exists() and (folder.is_file() or any(folder.iterdir())):
        sys.exit(f"{folder} contains files that are not asv's pages, and publishing would delete them: choose another.")
    archive = libraries()
    publish(folder)
    (folder / "vendor").mkdir()
    with tarfile.open(archive) as tar:
        for name in LIBRARIES.values():
            (folder / "vendor" / name).write_bytes(tar.extractfile(f"asv-0.5.1/asv/www/vendor/{name}").read())
    for page in folder.glob("*.html"):
        page.write_text(offline(page.read_text()))
    # stupidtable sorts when a timer fires, and by then asv may have removed the table with its data.
    sorting = folder / "vendor" / "stupidtable.js"
    sorting.write_text(sorting.read_text().replace(*GUARD))


def libraries():
    """The archive that contains the libraries, downloaded if it is not there yet."""
    if ARCHIVE.exists() and hashlib.sha256(ARCHIVE.read_bytes()).hexdigest() == SHA256:
        return ARCHIVE
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    wanted = ARCHIVE.with_name("requirements.txt")
    wanted.write_text(f"asv==0.5.1 --hash=sha256:{SHA256}\n")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    pip += ["--no-deps", "--no-binary", "asv", "--require-hashes", "-r", wanted, "-d", ARCHIVE.parent]
    done = subprocess.run(pip, capture_output=True, text=True)
    if "DO NOT MATCH THE HASHES" in done.stderr:
        sys.exit(f"The {ARCHIVE.name} that pip found is not the one pinned in docs/history.py: it is not used.")
    if done.returncode:
        said = re.search("(?i)error: .*|no module named .*", done.stderr)
        sys.exit(f"pip cannot download asv 0.5.1, which has the libraries of asv's pages: {said and said[0]}")
    return ARCHIVE


def publish(folder):
    """What ``asv publish`` writes, from a copy of the results."""
    if not git(ROOT, "rev-parse", "--verify", "--quiet", "HEAD"):
        sys.exit(f"The pages follow the git history, and {ROOT} is not a git repository with a commit.")
    conf = config.Config.load(str(ROOT / "asv.conf.json"))
    conf.repo, conf.html_dir, conf.project_url = str(ROOT), str(folder), "../index.html"
    if conf.show_commit_url == "#":  # with "#", asv's pages would look for a benchmark with the commit's name
        conf.show_commit_url = "#/?commit="
    if not git(ROOT, "rev-parse", "--verify", "--quiet", conf.branches[0]):
        conf.branches = ["HEAD"]
    with tempfile.TemporaryDirectory() as scratch:
        conf.results_dir = shutil.copytree(ROOT / conf.results_dir, f"{scratch}/results")
        for path in sorted(Path(conf.results_dir).rglob("*.json")):
            try:
                door.read_file(path)
            except door.Unfit as error:
                print(f"{path.relative_to(scratch)}: {error}: left out", file=sys.stderr)
                path.unlink()
        listed = f"{conf.results_dir}/benchmarks.json"
        if not Path(listed).exists():
            sys.exit("There is nothing to publish: results/benchmarks.json, asv's list of the suite, is missing.")
        # The number that identifies a result's conditions is not a metric, and a larger error within the tolerance is
        # no regression: lines of them would mean nothing.
        kept = {
            k: v for k, v in util.load_json(listed).items() if not k.endswith((".track_conditions", ".track_error"))
        }
        util.write_json(listed, kept)
        history = set(repo.get_repo(conf).get_branch_commits(conf.branches[0]))
        stored = {result.commit_hash for result in results.iter_results(conf.results_dir)}
        if lost := sorted(commit[:8] for commit in stored - history):
            cut = f"Not in the history of {conf.branches[0]}, which may be cut off here (git fetch --unshallow)"
            print(f"{cut}: {', '.join(lost)}: left out", file=sys.stderr)
        if not stored & history:
            sys.exit("There is nothing to publish: no commit with results is left.")
        Publish.run(conf, sorted(stored & history), pull=False)
    index = util.load_json(folder / "index.json")
    util.write_json(folder / "index.json", index | {"project": "GPU Cookbook"}, compact=True)


def offline(page):
    """The page, with the address of each library replaced by that of its local copy."""

    def local(match):
        for end, name in LIBRARIES.items():
            if match[2].endswith(end):
                return LOCAL[match[1]].format(name)
        sys.exit(f"asv's pages load {match[2]}, but docs/history.py has no copy of it.")

    page = FOREIGN.sub(local, page)
    return re.sub(r'(id="project-name"[^>]*) target="_blank"', r"\1", page)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())

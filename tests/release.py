"""Faults of a release that are seen in its files. `.ci/release` runs it, with a wheel when there is one."""

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINNED = re.compile(r"uses: [\w./-]+@([0-9a-f]{40} # v[\d.]+|HASH # TAG)$")


def git(root: Path, *words: str) -> list[str]:
    """What git says, in lines. `grep` finds nothing with 1."""
    done = subprocess.run(["git", *words], cwd=root, check=False, capture_output=True, text=True)
    return done.stdout.splitlines()


def of_the_source(root: Path) -> Iterator[str]:
    if changed := git(root, "status", "--porcelain"):
        yield f"the tree is dirty ('{changed[0]}', {len(changed)} in all): commit what belongs to the release"
    [version] = re.findall(r'^__version__ = "(.+)"$', (root / "ipexperf/__init__.py").read_text(), re.MULTILINE)
    section, date = re.findall(r"^## \[(.+?)\] - (.+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    if section != version:
        yield f"CHANGELOG.md begins with {section}, and the version in ipexperf/__init__.py is {version}"
    for tag in os.environ.get("TAG", "").split() or git(root, "tag", "--points-at", "HEAD", "v*"):
        if tag != f"v{version}":
            yield f"the tag of this commit is {tag}, and the version in ipexperf/__init__.py is {version}"
        elif not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
            yield f"CHANGELOG.md calls {section} '{date}', and {tag} is its tag: say the date there"
    origin = re.findall(r"github\.com[:/]([\w-]+)/", "".join(git(root, "remote", "-v")))
    if owner := os.environ.get("GITHUB_REPOSITORY_OWNER") or "".join(origin[:1]):
        for line in git(root, "grep", "-n", "OWNER/ipexperf", "--", ":!tests"):
            yield f"a placeholder is left in {line}: make owner NAME={owner}"
    for line in git(root, "grep", "-nE", "^ *(- )?uses: ", "--", "*.yml"):
        if not PINNED.search(line):
            yield f"an action is not pinned by its hash, with its version behind it, in {line}"
    yield from of_the_action(root)


def of_the_action(root: Path) -> Iterator[str]:
    """Inputs that are not there or not used, and scripts that bash does not take."""
    inputs, _, steps = (root / "action.yml").read_text().partition("\ninputs:\n")[2].partition("\nruns:\n")
    declared, used = set(re.findall(r"^  (\w+):", inputs, re.MULTILINE)), set(re.findall(r"inputs\.(\w+)", steps))
    for name in sorted(declared ^ used):
        yield f"action.yml {'never uses' if name in declared else 'does not declare'} its input {name}"
    for step in re.split(r"^    - name: ", steps, flags=re.MULTILINE)[1:]:
        script = step.partition(" run: ")[2].removeprefix("|\n")
        bash = subprocess.run(["bash", "-n", "-c", script], check=False, capture_output=True, text=True)
        if bash.returncode or " shell: bash\n" not in step:
            yield f"bash cannot run the step {step.split()[0]} of action.yml: {bash.stderr.strip() or 'no shell: bash'}"


def of_the_wheel(root: Path, wheel: Path) -> Iterator[str]:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tracked = git(root, "ls-files")
    for name in sorted(names):
        if os.path.relpath(os.path.realpath(root / name), os.path.realpath(root)) not in tracked:
            yield f"{wheel.name} has a stray file, which git does not track: {name}"
    for name in tracked:
        if name.startswith("ipexperf/") and name not in names and not (root / name).is_symlink():
            yield f"{wheel.name} lacks {name}: add it to package-data in pyproject.toml"


def main(root: Path = ROOT, wheel: str = "") -> int:
    faults = list(of_the_wheel(root, Path(wheel)) if wheel else of_the_source(root))
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    return min(len(faults), 1)


if __name__ == "__main__":
    sys.exit(main(ROOT, *sys.argv[1:]))

"""Debian packages of other suites, unpacked into a folder without touching the machine's apt."""

import fcntl
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple


class Unavailable(Exception):
    """Something the run needs cannot be had on this machine."""


class Row(NamedTuple):
    suites: tuple[str, ...]
    packages: tuple[str, ...]  # regular expressions; the newest package matching each is taken
    wanted: str                # the file this row is for, as a glob in the unpacked folder


# The cloud flavour has NVMe, the T10 PI code and the serial console built in: no modules needed.
TABLE = {
    "kernel-6.1": Row(("bookworm", "bookworm-security"),
                      (r"linux-image-6\.1\..*-cloud-amd64",), "boot/vmlinuz-*"),
    "kernel-6.12": Row(("bookworm-backports",),
                       (r"linux-image-6\.12\..*-cloud-amd64",), "boot/vmlinuz-*"),
    # From 7.x on linux-image-* is an empty package and the kernel is in linux-binary-*.
    "kernel-7": Row(("trixie-backports",),
                    (r"linux-binary-7\..*-cloud-amd64",), "usr/lib/modules/*/vmlinuz"),
    # Runs from its folder on bookworm's libraries, those of the installed qemu-system-x86.
    "qemu-10.0": Row(("bookworm-backports",),
                     ("qemu-system-x86", "qemu-system-common", "qemu-system-data"),
                     "usr/bin/qemu-system-x86_64"),
}


def fetch(name: str, cache: Path) -> Path:
    """The wanted file of a row, downloaded on the first call and found in the cache later."""
    row = TABLE[name]
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:  # tests that run side by side share one download
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / name).exists():
            with tempfile.TemporaryDirectory(dir=cache) as work:
                _unpack(row, Path(work))
                # Renamed only when whole, so a run that was cut short leaves nothing behind.
                os.rename(f"{work}/root", cache / name)
    found = list((cache / name).glob(row.wanted))
    if not found:
        raise Unavailable(f"no {row.wanted} in {cache / name}; remove the folder to fetch it again")
    return found[0]


def _unpack(row: Row, work: Path) -> None:
    config = _private_apt(row.suites, work)

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=work, env=os.environ | {"APT_CONFIG": str(config)},
                              capture_output=True, text=True)
        if done.returncode:
            error = re.search(r"^E: (.*)", done.stderr, re.M)  # apt's first one names the cause
            raise Unavailable(f"{shlex.join(command)}: {error[1] if error else done.stderr}")
        return done.stdout

    print(f"vm: fetching {' '.join(row.packages)} from {' '.join(row.suites)}", flush=True)
    run("apt-get", "update")
    names = run("apt-cache", "pkgnames").split()
    newest = []
    for pattern in row.packages:
        matches = [name for name in names if re.fullmatch(pattern, name)]
        if not matches:
            raise Unavailable(f"no package {pattern} in {' '.join(row.suites)}")
        newest.append(max(matches, key=lambda name: [int(n) for n in re.findall(r"\d+", name)]))
    run("apt-get", "download", *newest)
    for package in work.glob("*.deb"):
        run("dpkg", "-x", str(package), str(work / "root"))


def _private_apt(suites: tuple[str, ...], work: Path) -> Path:
    """An apt.conf with its own state and sources, but with the machine's options, like a proxy."""
    for folder in ("state/lists/partial", "cache/archives/partial", "sources"):
        (work / folder).mkdir(parents=True)
    (work / "status").touch()  # nothing counts as installed, so nothing installed is preferred
    (work / "sources/vm.sources").write_text(_sources(suites))
    # apt reads APT_CONFIG, then apt.conf.d, then Dir::Etc::main. Being first and last, this file
    # sets the folders in time and still clears the hooks that would act on the machine's own apt.
    config = work / "apt.conf"
    main = Path("/etc/apt/apt.conf")
    config.write_text(f'#include "{main}";\n' * main.exists() + f'''
        Dir::Etc::main "{config}";
        Dir::Etc::sourcelist "/dev/null";
        Dir::Etc::sourceparts "{work}/sources";
        Dir::Etc::preferences "/dev/null";
        Dir::Etc::preferencesparts "/dev/null";
        Dir::State "{work}/state";
        Dir::State::status "{work}/status";
        Dir::Cache "{work}/cache";
        APT::Sandbox::User "root";
        APT::Update::Error-Mode "any";
        Acquire::http::Timeout "30";
        Acquire::Languages "none";
        #clear APT::Update::Pre-Invoke;
        #clear APT::Update::Post-Invoke;
        #clear APT::Update::Post-Invoke-Success;
        ''')
    return config


def _sources(suites: tuple[str, ...]) -> str:
    """deb822 sources of the suites, with the machine's mirrors and signing options."""
    release = re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.M)
    text = ""
    for suite in suites:
        # The security archive is a mirror of its own; backports are with the release.
        own = (release[1] if release else "") + "-security" * suite.endswith("-security")
        for entry in _machine_sources():
            if (own in entry["suites"].split() and "main" in entry.get("components", "").split()
                    and "debian" in entry["uris"] and entry.get("enabled", "yes") == "yes"):
                entry |= {"types": "deb", "suites": suite, "components": "main"}
                text += "".join(f"{key}: {value}\n" for key, value in entry.items()) + "\n"
                break
    if not text:
        raise Unavailable("the machine's apt sources name no Debian mirror")
    return text


def _machine_sources():
    """Every entry of the machine's apt sources, as deb822 fields with names in lower case."""
    line = re.compile(r"^deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)\s+(.*)", re.M)
    # A field goes on over lines that start with a blank, as an inline key does.
    field = re.compile(r"^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)", re.M)
    apt = Path("/etc/apt")
    for path in sorted([*apt.glob("sources.list"), *apt.glob("sources.list.d/*.list")]):
        for options, uri, suite, components in line.findall(path.read_text()):
            entry = dict(option.split("=", 1) for option in options.split())
            yield entry | {"uris": uri, "suites": suite, "components": components}
    for path in sorted(apt.glob("sources.list.d/*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            entry = {name.lower(): value for name, value in field.findall(stanza)}
            if "deb" in entry.get("types", "").split():
                yield entry

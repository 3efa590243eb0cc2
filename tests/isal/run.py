#!/usr/bin/env python3
"""Runs the tests of pi/ against ISA-L 2.31, the first release that knows CRC-64/NVME.

Debian 12 has 2.30, where ISA-L leaves the 64-bit guard to the other kernels. Debian 13's packages
are unpacked into a folder, pi/ and its tests are built against them there, and run twice: as they
are, and with ISA-L as the implementation of every guard. Exit code 77: not run.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "vm"))
import packages  # noqa: E402  (the folder is no Python package)

packages.TABLE["packages"] = packages.Row(("trixie",), ("libisal2", "libisal-dev"),
                                          "usr/lib/*/pkgconfig/libisal.pc")


def relocated(pc: Path, folder: Path) -> Path:
    """A copy of the pkg-config file that names the unpacked folder; returns where it lies."""
    root = pc.parents[4]  # above usr/lib/<architecture>/pkgconfig
    text, changes = re.subn(r"^prefix=.*", f"prefix={root}/usr", pc.read_text(), flags=re.M)
    text = re.sub(r"^(\w+)=/usr/", rf"\1={root}/usr/", text, flags=re.M)
    if not changes:
        raise SystemExit(f"isal: no prefix in {pc}")
    folder.mkdir(exist_ok=True)
    (folder / pc.name).write_text(text)
    return folder


def build(folder: Path, pc_folder: Path, options: list[str]) -> Path:
    """Builds the tests of pi/; returns the program."""
    path = os.pathsep.join(filter(None, (str(pc_folder), os.environ.get("PKG_CONFIG_PATH"))))
    environment = os.environ | {"PKG_CONFIG_PATH": path}
    subprocess.run(["cmake", "-S", TESTS.parent, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
                    "-DNVPI_BUILD_CLI=OFF", "-DNVPI_BUILD_BENCHMARKS=OFF", *options],
                   env=environment, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "--target", "nvpi_pi_tests"],
                   env=environment, check=True)
    cache = (folder / "CMakeCache.txt").read_text()
    if "NVPI_ISAL_HAS_CRC64_NVME:INTERNAL=1" not in cache:
        raise SystemExit("isal: the build does not use crc64_rocksoft_refl")
    return folder / "tests/nvpi_pi_tests"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="its isal-2.31/ is used")
    parser.add_argument("options", nargs="*", help="more options for CMake, behind --")
    args = parser.parse_args()
    folder = args.build.resolve() / "isal-2.31"
    try:
        pc = packages.fetch("packages", folder)
    except packages.Unavailable as reason:
        print(f"isal: not run: {reason}")
        return 77
    program = build(folder / "build", relocated(pc, folder / "pkgconfig"), args.options)
    for name in ("", "isal"):
        print(f"isal: tests of pi/ with NVPI_GUARD={name}", flush=True)
        done = subprocess.run([program, "--no-colors=1"], env=os.environ | {"NVPI_GUARD": name})
        if done.returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

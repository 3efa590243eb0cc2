#!/usr/bin/env python3
"""Runs a test program on a real Linux kernel, with NVMe namespaces that have PI, under QEMU."""

import argparse
import collections
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True  # leave no __pycache__ in the source tree
import drives
import guest
from packages import TABLE, Unavailable, fetch

NOT_RUN = 77
FAILED = 125     # the harness's own failures: no boot, a panic, a timeout
BOOT_LIMIT = 75  # seconds; a boot takes 3 to 10


class Failed(Exception):
    pass


class NotStarted(Failed):
    pass


def show(line: str) -> None:
    print(line, flush=True)


def find_qemu(wanted: str | None, cache: Path) -> tuple[str, str]:
    """Path and version of the machine's own QEMU if that is the one wanted, else of a package's."""
    def version_of(qemu: str) -> str:
        done = subprocess.run([qemu, "--version"], capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(f"{qemu} does not start: {done.stderr.strip()}")
        return re.search(r"version (\d+\.\d+)", done.stdout)[1]

    qemu = shutil.which("qemu-system-x86_64")
    if not qemu:  # an unpacked QEMU needs its libraries, too
        raise Unavailable("qemu-system-x86_64 is not installed (package qemu-system-x86)")
    version = version_of(qemu)
    if wanted not in (None, version):
        if f"qemu-{wanted}" not in TABLE:
            raise Unavailable(f"the installed QEMU is {version}, not {wanted}")
        qemu = str(fetch(f"qemu-{wanted}", cache))
        version = version_of(qemu)
    return qemu, version


def boot(command: list[str], images: Path, timeout: float) -> int:
    """Boots once and follows the guest to the end of the test; returns the test's exit code."""
    console_end, qemu_end = os.pipe()
    qemu = subprocess.Popen(
        command + ["-serial", f"file:/proc/self/fd/{qemu_end}", "-serial", "stdio"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, pass_fds=[qemu_end])
    os.close(qemu_end)
    events = queue.Queue()  # (port, line), and (port, None) at the port's end

    def follow(port: str, stream) -> None:
        with stream:
            for line in stream:
                events.put((port, line.decode(errors="replace").rstrip("\r\n")))
        events.put((port, None))

    for port, stream in (("console", open(console_end, "rb")), ("test", qemu.stdout)):
        threading.Thread(target=follow, args=(port, stream), daemon=True).start()

    unseen = collections.deque(maxlen=30)  # the console's lines before the test
    started = False
    open_ports = 2
    deadline = time.monotonic() + BOOT_LIMIT
    try:
        while open_ports:
            left = deadline - time.monotonic()
            if left <= 0:  # asked for here because a chatty test never leaves the queue empty
                raise queue.Empty
            port, line = events.get(timeout=left)
            if line is None:
                open_ports -= 1
            elif port == "console":
                show(line) if started else unseen.append(line)
            elif line == "@@START":
                started = True
                deadline = time.monotonic() + timeout
            elif code := re.fullmatch(r"@@RC (\d+)", line):
                return int(code[1])
            elif line.startswith("@@FLIP "):
                try:
                    show("vm: flipped " + drives.flip(images, line.removeprefix("@@FLIP ")))
                except (ValueError, KeyError) as error:
                    raise Failed(f"bad request {line!r}: {error}")
            elif started:
                show(line)
        if qemu.wait():
            raise Failed(f"QEMU failed with code {qemu.returncode}")
        reason = "the guest went down, a panic most likely"
    except queue.Empty:
        reason = f"still running after {timeout:g} s" if started else f"no boot in {BOOT_LIMIT} s"
    finally:
        qemu.kill()  # much quicker than a power off, which can take half a minute
        qemu.wait()
    if started:
        raise Failed(f"the test did not end: {reason}")
    show("\n    ".join(["vm: the last lines of the guest's console:", *unseen]))
    raise NotStarted(f"the test did not start: {reason}")


def run(options: argparse.Namespace) -> int:
    qemu, version = find_qemu(options.qemu, options.cache)
    kernel = fetch(f"kernel-{options.kernel}", options.cache)
    show(f"vm: kernel {options.kernel} on QEMU {version}")
    cpu, threads = "max,-la57", "multi"
    if options.kernel != "6.1" and tuple(map(int, version.split("."))) < (8, 1):
        # Newer kernels on an older QEMU panic in half of the boots: they trip over its CMPXCHG16B,
        # and over a race between its threads when they patch their own code.
        cpu, threads = "max,-la57,-cx16", "single"
    with tempfile.TemporaryDirectory(prefix="nvpi-vm-") as folder:
        images = Path(folder)
        (images / "initramfs").write_bytes(
            guest.initramfs(options.kernel, options.test, options.test_args, options.bin))
        command = [
            "setpriv", "--pdeathsig", "KILL",  # QEMU never outlives the harness
            qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-M", "q35", "-accel", f"tcg,thread={threads}", "-cpu", cpu, "-smp", "2", "-m", "512M",
            # qboot and edd=off each keep the kernel from probing the drives through the firmware,
            # where many a boot hangs for ever.
            "-bios", "qboot.rom", "-kernel", str(kernel), "-initrd", f"{folder}/initramfs",
            "-append", "console=ttyS0 quiet edd=off panic=-1 mitigations=off tsc=reliable "
                       "no_timer_check nvme.poll_queues=1",
            *drives.create(images)]
        try:
            return boot(command, images, options.timeout)
        except NotStarted as reason:
            show(f"vm: {reason}; trying once more")
            return boot(command, images, options.timeout)


def main() -> int:
    kernels = [name.removeprefix("kernel-") for name in TABLE if name.startswith("kernel-")]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", required=True, choices=kernels)
    parser.add_argument("--qemu", help="version, 7.2 or 10.0; the installed one if left out")
    parser.add_argument("--cache", required=True, type=lambda path: Path(path).resolve(),
                        help="folder for unpacked packages; made if missing")
    parser.add_argument("--test", required=True, type=Path, help="program to run as root")
    parser.add_argument("--bin", type=Path, nargs="+", action="extend", default=[],
                        help="further programs for the guest, found by PATH")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for the test alone")
    parser.add_argument("--test-args", nargs=argparse.REMAINDER, default=[],
                        help="all that follows goes to the test, so this is the last option")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))  # clean up when stopped, too
    begin = time.monotonic()
    try:
        code = run(options)
    except Unavailable as reason:
        show(f"vm tests not run: {reason}")
        return NOT_RUN
    except (Failed, OSError) as reason:
        show(f"vm: failed: {reason}")
        return FAILED
    show(f"vm: exit code {code} after {time.monotonic() - begin:.1f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())

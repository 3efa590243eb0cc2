"""The guest's initial RAM disk: busybox, the test, its libraries and an init script."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

from drives import NAMESPACES
from packages import Unavailable

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/nvpi:/bin HOME=/root NVPI_VM=1 NVPI_VM_KERNEL={kernel}
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mkdir /dev/shm && mount -t tmpfs none /dev/shm
# Namespaces are found one by one, in the background from 6.12 on.
while [ $(ls /dev/ng* 2>/dev/null | wc -l) -lt {namespaces} ]; do sleep 0.1; done
# The boot was quiet; from here on warnings go to the console too.
dmesg -n 5
# The test has a serial port of its own, so kernel lines never break into its lines.
exec >/dev/ttyS1 2>&1 </dev/null
stty -F /dev/ttyS1 raw
echo @@START
cd /tmp
{command}
# The test's last line may lack its newline.
printf '\\n@@RC %d\\n' $?
while :; do sleep 1000; done
"""


def initramfs(kernel: str, test: Path, arguments: list[str], extra: list[Path]) -> bytes:
    busybox = shutil.which("busybox")
    if not busybox:
        raise Unavailable("busybox is not installed (package busybox-static)")
    init = INIT.format(kernel=kernel, namespaces=len(NAMESPACES),
                       command=shlex.join([f"/nvpi/{test.name}", *arguments]))
    files = {
        "init": init.encode(),
        "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n",
        "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
        "bin/busybox": Path(busybox).read_bytes(),
    }
    for path in (test, *extra):
        files[f"nvpi/{path.name}"] = path.read_bytes()
    for path in (Path(busybox), test, *extra):
        for library in _libraries(path):
            files[library.lstrip("/")] = Path(library).read_bytes()
    return _cpio(files, folders=["proc", "sys", "dev", "tmp", "root"])


def _libraries(binary: Path) -> list[str]:
    """The shared libraries of a program and its loader; none for a static one or a script."""
    listed = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
    if missing := re.search(r"(\S+) => not found", listed):
        raise FileNotFoundError(f"{binary} needs {missing[1]}, which is not there")
    return re.findall(r"(/\S+) \(0x", listed)


def _cpio(files: dict[str, bytes], folders: list[str]) -> bytes:
    """A 'newc' archive; folders come before what is in them, as the kernel asks."""
    parents = {str(parent) for name in files for parent in Path(name).parents} - {"."}
    entries = [(name, 0o040755, b"") for name in sorted(parents.union(folders))]
    entries += [(name, 0o100755, data) for name, data in files.items()]
    archive = bytearray()
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        # inode, mode, uid, gid, links, mtime, size, two device numbers, name size, checksum
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        archive += b"070701" + "".join(f"{field:08x}" for field in fields).encode()
        for part in (name.encode() + b"\0", data):
            archive += part
            archive += bytes(-len(archive) % 4)
    return bytes(archive)

"""The namespaces of the virtual machine, their image files and changes to the stored bytes."""

import os
from pathlib import Path
from typing import NamedTuple

IMAGE_SIZE = 64 << 20


class Namespace(NamedTuple):
    block: int              # bytes of data in a logical block
    metadata: int = 0       # bytes of metadata in a logical block
    pi_type: int = 0
    extended: bool = False  # metadata after each block's data, not in a buffer of its own
    first: bool = False     # PI in the first bytes of the metadata, not the last
    guard64: bool = False


NAMESPACES = {
    1: Namespace(4096, 8, 1),
    2: Namespace(4096, 8, 2),
    3: Namespace(4096, 8, 3),
    4: Namespace(4096, 8, 1, extended=True),
    5: Namespace(512, 8, 1),
    6: Namespace(4096, 64, 1),
    7: Namespace(4096, 64, 1, first=True),
    8: Namespace(4096, 64, 1, extended=True),
    9: Namespace(4096, 64, 1, extended=True, first=True),
    10: Namespace(4096),
    11: Namespace(512, 8, 1, extended=True),
    12: Namespace(4096, 16, 1, guard64=True),
    13: Namespace(4096, 64, 1, guard64=True),
}


def create(folder: Path) -> list[str]:
    """Makes the (sparse) image files; returns QEMU's options for them."""
    options = ["-device", "nvme-subsys,id=subsys,nqn=nvpi",
               "-device", "nvme,id=nvme,serial=nvpi,subsys=subsys"]
    for nsid, ns in NAMESPACES.items():
        path = folder / f"{nsid}.raw"
        with open(path, "wb") as file:
            file.truncate(IMAGE_SIZE)
        # The physical block size is 512 unless told and may not be below the logical one.
        device = (f"nvme-ns,drive=d{nsid},bus=nvme,nsid={nsid},"
                  f"logical_block_size={ns.block},physical_block_size={ns.block}")
        if ns.metadata:
            device += (f",ms={ns.metadata},mset={ns.extended:d},pi={ns.pi_type}"
                       f",pil={ns.first:d},pif={2 * ns.guard64}")
        options += ["-drive", f"file={path},if=none,format=raw,cache=unsafe,id=d{nsid}",
                    "-device", device]
    return options


def flip(folder: Path, request: str) -> str:
    """Carries out '<nsid> data|metadata <lba> <byte offset> <xor hex>'; returns what it did."""
    nsid, part, lba, offset, mask = request.split()
    ns = NAMESPACES[int(nsid)]
    blocks = IMAGE_SIZE // (ns.block + ns.metadata)
    # QEMU stores all data first and all metadata behind it, on extended namespaces too.
    start, size = {"data": (0, ns.block), "metadata": (blocks * ns.block, ns.metadata)}[part]
    lba, offset, mask = int(lba), int(offset), bytes.fromhex(mask)
    if not (0 <= lba < blocks and 0 <= offset and mask and offset + len(mask) <= size):
        raise ValueError("out of range")
    position = start + lba * size + offset
    with open(folder / f"{nsid}.raw", "r+b", buffering=0) as file:
        old = os.pread(file.fileno(), len(mask), position)
        new = bytes(a ^ b for a, b in zip(old, mask))
        os.pwrite(file.fileno(), new, position)
    return f"{request}: {old.hex()} is now {new.hex()} at {position}"

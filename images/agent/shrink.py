"""Cut from the ELF libraries below a folder what no loader reads: `shrink.py FOLDER`.

Wheels bring symbol tables and debugging data, which are three quarters of the agent's environment.
They lie behind the loaded segments and are found by the section headers. The base image has no
`strip`.
"""

import struct
import sys
from pathlib import Path

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
MAGIC_64_LITTLE = b"\x7fELF\x02\x01"


def shrunk(library: bytes) -> bytes:
    """The same library without sections; as it is where it is no 64-bit little-endian ELF."""
    if not library.startswith(MAGIC_64_LITTLE):
        return library
    header = list(HEADER.unpack_from(library))
    first, size, count = header[5], header[9], header[10]
    segments = [SEGMENT.unpack_from(library, first + index * size) for index in range(count)]
    end = max([first + count * size, *(segment[2] + segment[5] for segment in segments)])
    header[6] = header[12] = header[13] = 0  # where sections are, how many, which names them
    return HEADER.pack(*header) + library[HEADER.size : end]


def main(folder: Path) -> None:
    for path in sorted(folder.rglob("*.so")):
        path.write_bytes(shrunk(path.read_bytes()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Tar archives as a webdataset has them: written, and read by the library's own rules."""
import hashlib
import io
import os
import re
import struct
import tarfile

from harness import equal, expected_order, indices


def npy(descr, shape, data):
    """A file as numpy.save() writes it."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def archive(path, members, kind=tarfile.PAX_FORMAT, mode="w"):
    """Writes members, (name, bytes) or a TarInfo, in their sequence."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, mode, format=kind) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            tar.addfile(info, io.BytesIO(member[1]))
    return path


def samples_of(folder):
    """What the library's own rules find: [(key, {field: bytes})], by reading each archive with tarfile's streams."""
    return samples_in(os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".tar"))


def samples_in(paths):
    """The same of these archives, in this sequence."""
    found = []
    for path in paths:
        last = None
        with tarfile.open(path, "r|*") as tar:
            for member in tar:
                if not member.isreg() or re.match(r"^__[^/]*__(/|$)", member.name):
                    continue
                match = re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$", member.name)
                if not match:
                    continue
                key, extension = match.group(1), match.group(2).lower()
                if key != last:
                    found.append((key, {}))
                    last = key
                found[-1][1][extension] = tar.extractfile(member).read()
    return found


def web(path):
    return {"path": path, "format": "webdataset"}


def check_raw(daemon, name, samples, fields, **terms):
    """Each field of each sample, byte by byte, in the order of torch's sampler."""
    lines = daemon.read(name, pipeline="; ".join(f"{field}: raw" for field in fields), batch=7, **terms)
    equal(indices(lines), expected_order(len(samples), **terms), "order")
    for line in lines:
        contents = samples[line["index"]][1]
        for field in fields:
            told, content = line["fields"][field], contents.get(field)
            expected = None if content is None else {"dtype": "bytes", "shape": [len(content)],
                                                     "sha256": hashlib.sha256(content).hexdigest()}
            equal(told, expected, f"{field} of sample {line['index']}")

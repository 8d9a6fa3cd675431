#!/usr/bin/env python3
"""Small files that claim or become much: each is a damaged sample with its name and a reason, or is served as it is, while the daemon
keeps its memory_limit and whoever else reads goes on."""
import gzip
import io
import json
import os
import struct
import sys
import tarfile
import zipfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from contextlib import nullcontext

from harness import IS_SANITIZED, Table, case, contains, equal, identity_pixels, indices, main, png, within, write
from resident import Resident

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors")
MIB = 1 << 20
PICTURE = png(21, 17, identity_pixels(7, 21, 17))


def vector(*names):
    with open(os.path.join(VECTORS, *names), "rb") as file:
        return file.read()


def zeros(n_mib):
    """A deflated stream of so many megabytes, made at once: the same block again and again."""
    packer = zlib.compressobj(9)
    first = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + again * (n_mib - 1) + b"\3\0" + struct.pack(">I", (n_mib * MIB % 65521) << 16 | 1)


# ---- pictures ----------------------------------------------------------------------------------------------------------

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(width, height, data, *more, bits=8, color=2, interlaced=0):
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(chunk(*one) for one in more) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def gif(width, height, frames, screen=None):
    return b"GIF89a" + struct.pack("<HHBBB", *(screen or (width, height)), 0x80, 0, 0) + bytes(6) + \
        b"".join(b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\2" + data + b"\0" for data in frames) + b";"


def webp(width, height):
    """VP8L: five codes of one symbol, so that no pixel takes a bit."""
    bits, n = 0, 0
    for value, length in ((width - 1, 14), (height - 1, 14), (0, 1), (0, 3), (0, 1), (0, 1), (0, 1), *((1, 4),) * 5):
        bits |= value << n
        n += length
    data = b"\x2f" + bits.to_bytes(n // 8 + 4, "little")
    data += b"\0" * (len(data) & 1)
    return riff(b"VP8L" + struct.pack("<I", len(data)) + data)


def riff(content):
    return b"RIFF" + struct.pack("<I", len(content) + 4) + b"WEBP" + content


def animation(width, height):
    head = struct.pack("<I", 2) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return riff(b"VP8X" + struct.pack("<I", len(head)) + head + b"ANIM" + struct.pack("<IIH", 6, 0, 0))


def tiff(tags):
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(12)


def tags(width, height, *more):
    return ((256, 4, 1, width), (257, 4, 1, height), (258, 4, 1, 8), (259, 4, 1, 1), (262, 4, 1, 1), *more)


ONE_PIXEL = b"\2\x44\1"                       # of LZW: clear, 0, end
LARGE = 13000                                 # its square is below max_pixels
ROW = zlib.compress((b"\0" + bytes(30)) * 10)  # of ten rows of ten pixels
PICTURES = {
    "a_good.png": (PICTURE, None),
    "gif_canvas.gif": (gif(1, 1, [ONE_PIXEL], (65535, 65535)), "the limit is"),
    "gif_cut.gif": (gif(LARGE, LARGE, [ONE_PIXEL]), "before image complete"),
    "gif_frames.gif": (gif(1, 1, [ONE_PIXEL] * 20000), None),
    "jpeg_claim.jpg": (b"\xff\xd8\xff\xc2" + struct.pack(">HBHHBBBBBBBBBB", 17, 8, 65500, 65500, 3, 1, 34, 0, 2, 17, 1, 3, 17, 1), ""),
    "jpeg_scans.jpg": (b"\xff\xd8\xff\xc2" + struct.pack(">HBHHBBBB", 11, 8, 8000, 8000, 1, 1, 17, 0) + b"\xff\xda\0\x08\1\1\0\0\0\0" * 20000, ""),
    "png_claim.png": (png_of(2 ** 31 - 1, 2 ** 31 - 1, ROW), ""),
    "png_idat.png": (png_of(10, 10, zeros(300)), None),
    "png_interlaced.png": (png_of(LARGE, LARGE, ROW, interlaced=1), "memory_limit"),
    "png_profile.png": (png_of(10, 10, ROW, (b"iCCP", b"p\0\0" + zeros(300))), "limits"),
    "png_text.png": (png_of(10, 10, ROW, *((b"zTXt", b"k\0\0" + zeros(300)),) * 4), "limits"),
    "tiff_strips.tif": (tiff(tags(100, 100, (273, 4, 2 ** 31 - 1, 8), (277, 4, 1, 1), (278, 4, 1, 1), (279, 4, 2 ** 31 - 1, 8))), ""),
    "tiff_tile.tif": (tiff(tags(100, 100, (277, 4, 1, 1), (322, 4, 1, 2 ** 31 - 16), (323, 4, 1, 2 ** 31 - 16), (324, 4, 1, 8),
                                (325, 4, 1, 100))), ""),
    "webp_animation.webp": (animation(1 << 24, 1 << 24), ""),
    "webp_claim.webp": (webp(16383, 16383), "the limit is"),
    "webp_large.webp": (webp(LARGE, LARGE), "memory_limit"),
    "z_good.png": (PICTURE, None),
}

# ---- sounds ------------------------------------------------------------------------------------------------------------


def table(polynomial, bits):
    top, mask, out = 1 << bits - 1, (1 << bits) - 1, []
    for byte in range(256):
        value = byte << bits - 8
        for _ in range(8):
            value = (value << 1 ^ (polynomial if value & top else 0)) & mask
        out.append(value)
    return out


CRC8, CRC16, CRC32 = table(0x07, 8), table(0x8005, 16), table(0x04c11db7, 32)


def crc(of, bits, data):
    value = 0
    for byte in data:
        value = (value << 8 ^ of[value >> bits - 8 ^ byte]) & (1 << bits) - 1
    return value


def flac(n_samples, frames=b""):
    info = struct.pack(">HH", 65535, 65535) + bytes(6) + (16000 << 44 | 15 << 36 | n_samples).to_bytes(8, "big") + bytes(16)
    return b"fLaC\x80\0\0\x22" + info + frames


def silence(n_frames):
    """FLAC: frames of 65,535 samples, each of one number."""
    out = b""
    for i in range(n_frames):
        head = b"\xff\xf8\x70\x08" + chr(i).encode() + struct.pack(">H", 65534)
        head += bytes([crc(CRC8, 8, head)]) + b"\0\0\0"
        out += head + struct.pack(">H", crc(CRC16, 16, head))
    return flac(n_frames * 65535, out)


def ogg_of_hours():
    """The last page of an Opus file claims to end after 2^40 samples."""
    content = bytearray(vector("sound", "opus.opus"))
    at = content.rindex(b"OggS")
    content[at + 6:at + 14] = struct.pack("<Q", 1 << 40)
    content[at + 22:at + 26] = bytes(4)
    content[at + 22:at + 26] = struct.pack("<I", crc(CRC32, 32, content[at:]))
    return bytes(content)


def mp3_of_hours():
    """Xing's header in the first frame claims 2^32 - 1 frames."""
    frame = b"\xff\xfb\x90\x00" + bytes(32) + b"Xing\0\0\0\1" + b"\xff" * 4
    return frame + bytes(417 - len(frame)) + b"\xff\xfb\x90\x00" + bytes(413)


def wav(n_claimed, n_channels=1, rate=16000):
    return b"RIFF" + struct.pack("<I", 2 ** 32 - 1) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, n_channels, rate, 2 * rate, 2, 16) + \
        b"data" + struct.pack("<I", n_claimed) + bytes(32000)


SOUNDS = {
    "a_good.wav": (vector("sound", "s16.wav"), None),
    "flac_claim.flac": (flac(2 ** 36 - 1), ""),
    "flac_hours.flac": (silence(2000), "max_seconds"),
    "mp3_claim.mp3": (mp3_of_hours(), ""),
    "mp3_tag.mp3": (b"ID3\4\0\0\x7f\x7f\x7f\x7f" + bytes(1000), ""),
    "ogg_claim.opus": (ogg_of_hours(), ""),
    "wav_channels.wav": (wav(32000, 65535), ""),
    "wav_claim.wav": (wav(2 ** 30), "cut short"),
    "wav_endless.wav": (wav(2 ** 32 - 1), None),
    "z_good.wav": (vector("sound", "s16.wav"), None),
}


# ---- texts -------------------------------------------------------------------------------------------------------------

WORDS = {"type": "WordPiece", "unk_token": "u", "vocab": {"u": 0, "a": 1}, "max_input_chars_per_word": 2 ** 31}


def cuts(pattern):
    return {"model": WORDS, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}}


TOKENIZERS = {
    "nested": (b'{"model":' + b"[" * 100000 + b"]" * 100000 + b"}", "nested"),
    "sequences": (b'{"normalizer":' + b'{"type":"Sequence","normalizers":[' * 10 + b'{"type":"NFC"}' + b"]}" * 10 + b',"model":{}}', "nested"),
    "added": (json.dumps({"model": WORDS, "added_tokens": [{"id": i + 2, "content": f"<{i}>"} for i in range(70000)]}).encode(), "more than 65536 tokens"),
    "merges": (json.dumps({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"] * 100000}}).encode(), "not in the vocabulary"),
    "regex": (json.dumps(cuts("(" * 1000 + "a" + ")" * 1000)).encode(), "groups so deep"),
}
GOOD_TOKENIZERS = {
    "backtracks": cuts("a*a*a*a*a*a*b|a"),
    "looks_far": cuts("a+b|a"),
}
TEXTS = {
    "a_good.txt": (b"a a", None),
    "word.txt": (b"a" * 100000, "patterns take too long"),
    "z_good.txt": (b"a", None),
}
FORMS = {"model": {**WORDS, "max_input_chars_per_word": 100}, "normalizer": {"type": "NFKC"}, "pre_tokenizer": {"type": "WhitespaceSplit"}}
UNCUT = {"model": {"type": "BPE", "vocab": {"a": 0, "aa": 1}, "merges": ["a a"]}}
LIGATURES = ("\ufdfa" * 4 * MIB).encode(), "making its tokens takes more than 64.0 MiB"  # each becomes 18 characters
LONG = {
    "forms": (FORMS, {"a_good": (b"a a", None), "forms_1": LIGATURES, "forms_2": LIGATURES,
                      "long": (b"a " * 4 * MIB, None), "z_good": (b"a", None)}),
    "uncut": (UNCUT, {"a_good": (b"a a", None), "word_1": (b"a" * 3 * MIB, "making its tokens"), "word_2": (b"a" * 3 * MIB, "making its tokens"),
                      "z_good": (b"a", None)}),
}


# ---- archives ----------------------------------------------------------------------------------------------------------

def npz(shape, n_bytes, method):
    """An archive of one array, whose header claims a shape for what are n_bytes of zeros."""
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive:
        archive.writestr("a.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + bytes(n_bytes))
    return whole.getvalue()


def tar_gz():
    """A good sample, and one whose picture is half a gigabyte of zeros; a deflated stream in pieces of a few bytes."""
    parts = [tarfile.TarInfo("0.png"), PICTURE + bytes(-len(PICTURE) % 512), tarfile.TarInfo("1.png")]
    parts[0].size, parts[2].size = len(PICTURE), 512 * MIB
    begin = b"".join(part if isinstance(part, bytes) else part.tobuf(tarfile.USTAR_FORMAT) for part in parts)
    return gzip.compress(begin) + gzip.compress(bytes(8 * MIB)) * 64 + gzip.compress(bytes(1024))


ARCHIVES = {
    "deflated.npz": (npz((64 * MIB,), 64 * MIB, zipfile.ZIP_DEFLATED), "savez()"),
    "claims.npz": (npz((1 << 44,), 8, zipfile.ZIP_STORED), "is cut"),
    "wide.npz": (npz((1, 1 << 44), 8, zipfile.ZIP_STORED), "is cut"),
}


# ---- tests -------------------------------------------------------------------------------------------------------------

def put(box, name, files):
    """A listing of the files; texts stand in it themselves."""
    rows, is_text = [], name not in ("pictures", "sounds")
    for file, (content, _) in sorted(files.items()):
        if not is_text:
            write(box.path(name, file), content)
        rows.append({"name": file, "text": content.decode()} if is_text else {"name": file})
    write(box.path(name, "l.jsonl"), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
    return {"path": box.path(name), "format": "jsonl", "files": "" if is_text else "file=name"}


def check_served(daemon, dataset, files, rows, **options):
    """The good ones are delivered; each other one is in the list of damaged samples with its reason."""
    names = sorted(files)
    lines = daemon.read(dataset, on_error="skip", batch=2, shuffle=False, **options)
    with rows.row(f"{dataset}: what is served"):
        equal([names[i] for i in indices(lines)], [name for name in names if files[name][1] is None], "samples")
    said = {name: "" for name in names}
    for error in daemon.objects("errors", dataset):
        said[names[error["index"]]] += error["error"] + "\n"
    for name in names:
        reason = files[name][1]
        with rows.row(name):
            equal(said[name] != "", reason is not None, f"is listed as damaged: {said[name]}")
            contains(said[name], reason or "")


@case("pictures, sounds and texts of some bytes that claim or become gigabytes are refused by name; others are served meanwhile")
def _(box):
    folder = box.path("tokenizers")
    for name, (content, _) in TOKENIZERS.items():
        write(os.path.join(folder, f"{name}.json"), content)
    for name, content in [*GOOD_TOKENIZERS.items(), *((name, content) for name, (content, _) in LONG.items())]:
        write(os.path.join(folder, f"{name}.json"), json.dumps(content).encode())
    daemon = box.daemon({"good": box.folder_of_pictures("good", 8), "pictures": put(box, "pictures", PICTURES),
                         "sounds": put(box, "sounds", SOUNDS), "texts": put(box, "texts", TEXTS),
                         **{name: put(box, name, texts) for name, (_, texts) in LONG.items()}},
                        memory_limit="256MiB", workers=2, tokenizers=folder)
    rows = Table()
    with nullcontext() if IS_SANITIZED else Resident(daemon, 256):  # what a sanitizer keeps is not the daemon's memory
        steady = daemon.reader("good", job="steady", epochs=40000, batch=4, delay_ms=20)
        steady.wait_lines(8)
        check_served(daemon, "pictures", PICTURES, rows, pipeline="file: resize(16) center_crop(16)")
        check_served(daemon, "sounds", SOUNDS, rows, pipeline="file: audio(max_seconds=60, rate=16000)")
        for name in GOOD_TOKENIZERS:
            check_served(daemon, "texts", TEXTS, rows, pipeline=f"text: tokens({name}, max_length=4096) pad")
        for name, (_, texts) in LONG.items():
            check_served(daemon, name, texts, rows, pipeline=f"text: tokens({name}, max_length=16)")
        for name, (_, reason) in TOKENIZERS.items():
            with rows.row(name):
                daemon.refused("texts", name, reason, pipeline=f"text: tokens({name}, truncation=none)")
        n = len(steady.lines)
        steady.wait_lines(n + 8)
    equal(steady.process.poll(), None, "the steady reader still reads")
    steady.process.terminate()
    rows.done()


@case("archives of some kilobytes that claim or become gigabytes are refused by name, or stop at the spool's limit, while others read")
def _(box):
    for name, (content, _) in ARCHIVES.items():
        write(box.path(name), content)
    write(box.path("s", "a.tar.gz"), tar_gz())
    os.makedirs(box.path("spool"))
    daemon = box.daemon({"good": box.folder_of_pictures("good", 8), **{name: {"path": box.path(name), "format": "npy"} for name in ARCHIVES},
                         "s": {"path": box.path("s"), "format": "webdataset", "stream": "yes", "spool": box.path("spool"),
                               "spool_limit": "1MiB"}}, memory_limit="256MiB", workers=2)
    rows = Table()
    with nullcontext() if IS_SANITIZED else Resident(daemon, 256):
        stream = daemon.reader("s", batch=1)
        for name, (_, reason) in ARCHIVES.items():
            with rows.row(name):
                daemon.refused(name, name, reason)
        with rows.row("a.tar.gz"):
            within(60, lambda: "spool_limit" in {row["name"]: row for row in daemon.objects("datasets")}["s"]["text"], "the spool is full")
            equal(sum(os.path.getsize(os.path.join(box.path("spool"), name)) for name in os.listdir(box.path("spool"))) <= MIB, True, "spool")
            equal(len(daemon.read("good", batch=4)), 8, "samples of others")
        stream.process.terminate()
    rows.done()


main()

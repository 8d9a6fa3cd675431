#!/usr/bin/python3
"""Makes tests/vectors/pictures/ and what Pillow reads out of each file.

Run with Debian 12's python3-pil (9.4.0, libjpeg-turbo 2.1.5, libwebp 1.2.4) and, for odd sampling factors, cjpeg of
libjpeg-turbo-progs. The results are committed, so that the tests need neither. One JSON object a line in expected.jsonl:

    {"file", "width", "height", "fnv"}              Pillow's convert("RGB"): FNV-1a 64 over the bytes
    {"file", "error", "says"}                       Pillow refuses it; the errno that ours gives, a part of the message
    {"file", "cut", "ok"}                           the file's first `cut` bytes: does Pillow accept them?
"""
import errno
import io
import json
import os
import struct
import subprocess
import sys
import zlib

import numpy as np
from PIL import Image

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "pictures")
RNG = np.random.default_rng(20)
FILES = {}
ERRORS = {}
CUTS = {}


def photo(width, height, channels=3):
    """Smooth waves with some noise: like a photograph to a codec, and no two pixels alike."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 60 * np.sin(x / (5 + c) + c) + 60 * np.cos(y / (7 - c)) for c in range(channels)]
    return np.clip(np.stack(waves, -1) + RNG.normal(0, 6, (height, width, channels)), 0, 255).astype(np.uint8)


def save(name, image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    FILES[name] = stream.getvalue()
    return FILES[name]


def cjpeg(name, pixels, *options):
    grey = pixels.ndim == 2
    header = b"%s\n%d %d\n255\n" % (b"P5" if grey else b"P6", pixels.shape[1], pixels.shape[0])
    FILES[name] = subprocess.run(["cjpeg", *options], input=header + pixels.tobytes(), capture_output=True, check=True).stdout
    return FILES[name]


def segments(jpeg):
    """The marker segments up to the first scan, then the rest."""
    parts, at = [jpeg[:2]], 2
    while jpeg[at + 1] != 0xDA:
        size = struct.unpack(">H", jpeg[at + 2:at + 4])[0] + 2
        parts.append(jpeg[at:at + size])
        at += size
    return parts, jpeg[at:]


def edit(jpeg, change):
    """Applies change(segment) -> segment or None (leave out) to each marker segment."""
    parts, rest = segments(jpeg)
    return b"".join(filter(None, (change(part) for part in parts))) + rest


def without(jpeg, *markers):
    return edit(jpeg, lambda s: None if s[1] in markers else s)


def patched(jpeg, marker, offset, value):
    return edit(jpeg, lambda s: s[:offset] + value + s[offset + len(value):] if s[1] == marker else s)


def refuse(name, data, error, says):
    FILES[name] = data
    ERRORS[name] = (error, says)


def jpegs():
    rgb = photo(45, 35)
    for subsampling in range(3):
        save(f"sampling_{subsampling}.jpg", Image.fromarray(rgb), "JPEG", quality=85, subsampling=subsampling)
    save("progressive.jpg", Image.fromarray(rgb), "JPEG", quality=85, progressive=True)
    save("grey.jpg", Image.fromarray(rgb[..., 0]), "JPEG")
    save("grey_progressive.jpg", Image.fromarray(rgb[..., 0]), "JPEG", progressive=True)
    for size in ((1, 1), (1, 19), (19, 1), (8, 8), (17, 16)):
        save("size_%dx%d.jpg" % size, Image.fromarray(photo(*size)), "JPEG", quality=90)
    for sampling in ("1x2", "4x1", "1x4", "4x2", "3x1", "2x2,1x2,2x1", "1x1,2x2,2x2"):
        cjpeg("sampling_" + sampling.replace(",", "_") + ".jpg", rgb, "-sample", sampling)
    cjpeg("restarts.jpg", rgb, "-restart", "1")
    cjpeg("restarts_progressive.jpg", rgb, "-restart", "3B", "-progressive")
    cjpeg("arithmetic.jpg", rgb, "-arithmetic")
    cjpeg("components_rgb.jpg", rgb, "-rgb")
    cmyk = save("cmyk_adobe.jpg", Image.fromarray(photo(30, 21, 4), "CMYK"), "JPEG", quality=90)
    FILES["cmyk_no_marker.jpg"] = without(cmyk, 0xEE)
    FILES["ycck_adobe.jpg"] = patched(cmyk, 0xEE, 15, b"\x02")
    plain = FILES["sampling_2.jpg"]
    FILES["motion_no_tables.jpg"] = without(plain, 0xC4)
    thumbnail = b"\xff\xe1" + struct.pack(">H", 2 + 6 + len(FILES["size_8x8.jpg"])) + b"Exif\0\0" + FILES["size_8x8.jpg"]
    FILES["thumbnail_inside.jpg"] = plain[:2] + thumbnail + plain[2:]
    rotated = Image.Exif()
    rotated[0x0112] = 6
    save("orientation_ignored.jpg", Image.fromarray(rgb), "JPEG", exif=rotated)
    FILES["rubbish_behind.jpg"] = plain + b"rubbish" * 9
    FILES["height_too_large.jpg"] = patched(plain, 0xC0, 5, struct.pack(">H", 60))
    half = len(plain) // 2 + 150
    FILES["rubbish_inside.jpg"] = plain[:half] + bytes(v if v != 0xFF else 0x7F for v in RNG.bytes(40)) + plain[half + 40:]

    for number in range(200): # Pillow misses the end marker only if the decoder looks so far ahead
        cut = save("no_end_marker.jpg", Image.fromarray(photo(33 + number % 9, 20)), "JPEG", quality=80)[:-2]
        FILES["no_end_marker.jpg"] = cut
        if read(cut) is not None:
            break

    refuse("junk_before.jpg", b"junk" + plain, "ENOTSUP", "no known picture format (")
    refuse("cut_in_header.jpg", plain[:100], "EBADMSG", "JPEG: the data end")
    refuse("cut_in_data.jpg", plain[:-200], "EBADMSG", "JPEG: the data end before the picture does")
    refuse("twelve_bits.jpg", patched(plain, 0xC0, 4, b"\x0c"), "ENOTSUP", "JPEG: Unsupported JPEG data precision 12")
    refuse("lossless.jpg", edit(plain, lambda s: b"\xff\xc3" + s[2:] if s[1] == 0xC0 else s), "ENOTSUP", "JPEG: Unsupported JPEG process")
    refuse("no_quantisation.jpg", without(plain, 0xDB), "EBADMSG", "JPEG: Quantization table")
    refuse("bad_huffman_table.jpg", patched(plain, 0xC4, 5, b"\xff" * 8), "EBADMSG", "JPEG: Bogus Huffman table")
    refuse("giant_header.jpg", patched(plain, 0xC0, 5, struct.pack(">HH", 65500, 65500)), "EFBIG", "65500 x 65500 = 4290250000")
    CUTS["sampling_2.jpg"] = CUTS["progressive.jpg"] = CUTS["cmyk_adobe.jpg"] = CUTS["restarts.jpg"] = None


def chunk(name, data, damage=0):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data) ^ damage)


def png(width, height, colour, depth, interlaced, palette=None, transparency=None, damaged=None):
    bits = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour] * depth

    def rows(w, h):
        n_bytes = (w * bits + 7) // 8 if w else 0
        return b"".join(bytes([int(RNG.integers(0, 5))]) + RNG.bytes(n_bytes) for _ in range(h)) if n_bytes else b""

    if interlaced:
        passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
        data = b"".join(rows(max(0, (width - x + dx - 1) // dx), max(0, (height - y + dy - 1) // dy)) for x, y, dx, dy in passes)
    else:
        data = rows(width, height)
    packed = zlib.compress(data, 9)
    if damaged == "Adler":
        packed = packed[:-1] + bytes([packed[-1] ^ 1])
    middle = len(packed) // 2
    out = b"\x89PNG\r\n\x1a\n"
    out += chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced), damaged == "IHDR")
    if palette:
        out += chunk(b"PLTE", RNG.bytes(palette * 3))
    if transparency:
        out += chunk(b"tRNS", transparency)
    out += chunk(b"IDAT", packed[:middle], damaged == "IDAT") + chunk(b"IDAT", packed[middle:])
    return out + chunk(b"IEND", b"")


def pngs():
    for interlaced in (0, 1):
        suffix = "_interlaced.png" if interlaced else ".png"
        for colour, name, depths in ((0, "grey", (1, 2, 4, 8, 16)), (2, "rgb", (8, 16)), (3, "palette", (1, 2, 4, 8)),
                                     (4, "grey_alpha", (8, 16)), (6, "rgba", (8, 16))):
            for depth in depths:
                palette = min(1 << depth, 200) if colour == 3 else None
                FILES[f"{name}_{depth}{suffix}"] = png(19, 13, colour, depth, interlaced, palette)
        FILES["palette_short" + suffix] = png(19, 13, 3, 8, interlaced, 5)
        FILES["palette_transparent" + suffix] = png(19, 13, 3, 4, interlaced, 16, b"\0\x80\xff")
        FILES["grey_transparent" + suffix] = png(19, 13, 0, 8, interlaced, None, b"\0\7")
        FILES["rgb_transparent" + suffix] = png(19, 13, 2, 8, interlaced, None, b"\0\1\0\2\0\3")
    for size in ((1, 1), (1, 9), (9, 1)):
        FILES["size_%dx%d.png" % size] = png(*size, 2, 8, 0)
        FILES["size_%dx%d_interlaced.png" % size] = png(*size, 0, 1, 1)
    FILES["wrong_idat_checksum.png"] = png(19, 13, 2, 8, 0, damaged="IDAT")
    FILES["wrong_idat_checksum_interlaced.png"] = png(19, 13, 3, 2, 1, 4, damaged="IDAT")
    save("smooth.png", Image.fromarray(photo(60, 40)), "PNG")
    refuse("wrong_data_checksum.png", png(19, 13, 2, 8, 0, damaged="Adler"), "EBADMSG", "PNG: ")
    refuse("wrong_header_checksum.png", png(19, 13, 2, 8, 0, damaged="IHDR"), "EBADMSG", "PNG: ")
    refuse("cut_in_data.png", FILES["smooth.png"][:-500], "EBADMSG", "PNG: end of stream")
    refuse("cut_in_header.png", FILES["smooth.png"][:20], "EBADMSG", "PNG: ")
    giant = bytearray(FILES["rgb_8.png"])
    giant[16:24] = struct.pack(">II", 100000, 100000)
    giant[29:33] = struct.pack(">I", zlib.crc32(bytes(giant[12:29])))
    refuse("giant_header.png", bytes(giant), "EFBIG", "100000 x 100000 = 10000000000")
    CUTS["smooth.png"] = CUTS["grey_2_interlaced.png"] = 60 # Pillow does not miss the last bytes; ours does


def webps():
    rgb, rgba = photo(37, 29), photo(37, 29, 4)
    save("lossy.webp", Image.fromarray(rgb), "WEBP", quality=80)
    save("lossy_alpha.webp", Image.fromarray(rgba, "RGBA"), "WEBP", quality=80)
    save("lossless.webp", Image.fromarray(rgb), "WEBP", lossless=True)
    save("lossless_alpha.webp", Image.fromarray(rgba, "RGBA"), "WEBP", lossless=True, exact=True)
    save("size_1x1.webp", Image.fromarray(photo(1, 1)), "WEBP")
    save("with_exif.webp", Image.fromarray(rgb), "WEBP", exif=b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0")
    frames = [Image.fromarray(photo(37, 29)) for _ in range(2)]
    save("animation.webp", frames[0], "WEBP", save_all=True, append_images=frames[1:])
    corner = np.zeros((29, 37, 4), np.uint8)
    corner[14:, 11:] = photo(26, 15, 4)
    corner[14:, 11:, 3] = 255
    frames = [Image.fromarray(corner, "RGBA"), Image.fromarray(rgba, "RGBA")]
    save("animation_corner.webp", frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    refuse("cut_in_data.webp", FILES["lossy.webp"][:-100], "EBADMSG", "its header says")
    damaged = bytearray(FILES["lossless.webp"])
    damaged[21:25] = b"\xff\xff\xff\xff"
    refuse("damaged_header.webp", bytes(damaged), "EBADMSG", "WebP: ")
    CUTS["lossy.webp"] = CUTS["lossless_alpha.webp"] = CUTS["animation.webp"] = None


def others():
    small = Image.fromarray(photo(9, 7))
    FILES["really_png.jpg"] = FILES["smooth.png"]
    FILES["really_webp.jpeg"] = FILES["lossy.webp"]
    FILES["really_jpeg.png"] = FILES["sampling_1.jpg"]
    refuse("empty.jpg", b"", "EBADMSG", "the file is empty")
    refuse("zeros.jpg", bytes(500), "ENOTSUP", "beginning with 00 00 00 00 00 00 00 00")
    refuse("two_bytes.jpg", b"\xff\xd8", "ENOTSUP", "2 bytes, beginning with ff d8)")
    refuse("page.jpg", b"\n <!DOCTYPE html><html><body>404</body></html>", "ENOTSUP", "the file is HTML or XML text")
    for kind, name in (("GIF", "GIF"), ("BMP", "BMP"), ("TIFF", "TIFF"), ("PPM", "PNM")):
        stream = io.BytesIO()
        small.save(stream, kind)
        refuse(kind.lower() + ".jpg", stream.getvalue(), "ENOTSUP", "the file is " + name)


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return "%016x" % value


def read(data):
    """Pillow's pixels, or None."""
    try:
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    except Exception:  # Pillow raises nearly everything
        return None


def cut_lines(name, n_kept_free):
    data = FILES[name]
    last = len(data) - (n_kept_free or 0)
    points = {len(data) * i // 12 for i in range(1, 12)} | {len(data) - i for i in (1, 2, 3, 4, 8, 20)}
    for cut in sorted(points):
        if 0 < cut < last:
            yield {"file": name, "cut": cut, "ok": read(data[:cut]) is not None}


def main():
    os.makedirs(OUT, exist_ok=True)
    jpegs(), pngs(), webps(), others()
    lines = []
    for name, data in FILES.items():
        with open(os.path.join(OUT, name), "wb") as file:
            file.write(data)
        pixels = None if ERRORS.get(name, ("",))[0] == "EFBIG" else read(data)
        if name in ERRORS:
            error, says = ERRORS[name]
            if pixels is not None and error != "ENOTSUP": # GIF and the like are Pillow's, not ours
                sys.exit(f"{name}: Pillow reads it")
            lines.append({"file": name, "error": getattr(errno, error), "says": says})
        elif pixels is None:
            sys.exit(f"{name}: Pillow refuses it")
        else:
            lines.append({"file": name, "width": pixels.shape[1], "height": pixels.shape[0], "fnv": fnv1a(pixels.tobytes())})
    for name, n_kept_free in CUTS.items():
        lines.extend(cut_lines(name, n_kept_free))
    with open(os.path.join(OUT, "expected.jsonl"), "w") as file:
        file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    print(len(FILES), "files,", sum(map(len, FILES.values())), "bytes,", len(lines), "expectations")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Makes tests/vectors/pictures/ and what Pillow reads out of each file.

Run with Debian 12's python3-pil (9.4.0, libjpeg-turbo 2.1.5, libwebp 1.2.4, libtiff 4.5.0), for odd sampling factors with
cjpeg of libjpeg-turbo-progs, and for TIFFs in tiles and planes with ImageMagick (imagemagick-6.q16). The results are committed, so that the tests need neither. One JSON object a line in expected.jsonl:

    {"file", "width", "height", "fnv"}              Pillow's convert("RGB"): FNV-1a 64 over the bytes, with palettes of 10.1
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

from pillow_palette import today

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

    refuse("junk_before.jpg", b"junk" + plain, "ENOTSUP", "unknown picture format (")
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
    refuse("psd.jpg", b"8BPS\0\1" + bytes(20), "ENOTSUP", "the file is PSD, which is not handled; handled are JPEG, PNG")
    for kind in ("GIF", "BMP", "TIFF", "PPM"):
        save(f"really_{kind.lower()}.jpg", small, kind)


def bmp(bits, width, height, rows=None, palette=b"", n_colors=0, compression=0, header=40, masks=b"", at=None, down=False):
    """A bitmap with any header; rows of noise unless given."""
    if rows is None:
        rows = RNG.bytes((width * bits + 31) // 32 * 4 * height)
    if header == 12:
        head = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        head = struct.pack("<IiiHHIIIIII", header, width, -height if down else height, 1, bits, compression, len(rows), 0, 0,
                           n_colors, 0)
        head += masks.ljust(header - 40, b"\0")
    begin = 14 + len(head) + len(palette)
    return b"BM" + struct.pack("<IHHI", begin + len(rows), 0, 0, begin if at is None else at) + head + palette + rows


def run_lengths(bits, width, height, with_ends=True):
    """Runs and single pixels in turn; rows end with a mark or just end."""
    out = b""
    for _ in range(height):
        x = 0
        while x < width:
            n = min(int(RNG.integers(1, 9)), width - x)
            if n >= 4 and RNG.random() < 0.5:
                n -= n % 2
                data = RNG.bytes(n if bits == 8 else n // 2)
                out += bytes([0, n]) + data + b"\0" * (len(data) % 2)
            else:
                out += bytes([n]) + RNG.bytes(1)
            x += n
        if with_ends:
            out += b"\0\0"
    return out + b"\0\1"


def bmps():
    size = (21, 9)
    rgb = Image.fromarray(photo(*size))
    for name, image in (("rgb", rgb), ("grey", rgb.convert("L")), ("palette", rgb.quantize(100)), ("bilevel", rgb.convert("1")),
                        ("rgba", Image.fromarray(photo(*size, 4), "RGBA"))):
        save(f"pillow_{name}.bmp", image, "BMP")
    for bits in (1, 4, 8):
        palette = RNG.bytes(4 << bits)
        FILES[f"palette_{bits}.bmp"] = bmp(bits, *size, palette=palette)
        FILES[f"palette_{bits}_down.bmp"] = bmp(bits, *size, palette=palette, down=True)
        FILES[f"palette_{bits}_os2.bmp"] = bmp(bits, *size, palette=RNG.bytes(3 << bits), header=12)
        FILES[f"palette_{bits}_v5.bmp"] = bmp(bits, *size, palette=palette, header=124)
        FILES[f"palette_{bits}_not_skipped.bmp"] = bmp(bits, *size, palette=palette, at=54)
        FILES[f"palette_{bits}_no_offset.bmp"] = bmp(bits, *size, palette=palette, at=0)
    FILES["palette_short.bmp"] = bmp(8, *size, palette=RNG.bytes(20), n_colors=5)
    for bits in (16, 24, 32):
        FILES[f"rgb_{bits}.bmp"] = bmp(bits, *size)
        FILES[f"rgb_{bits}_down_v4.bmp"] = bmp(bits, *size, header=108, down=True)
    layouts = {
        "bgrx": (32, 0xFF0000, 0xFF00, 0xFF, 0), "bgra": (32, 0xFF0000, 0xFF00, 0xFF, 0xFF000000),
        "xbgr": (32, 0xFF000000, 0xFF0000, 0xFF00, 0), "abgr": (32, 0xFF000000, 0xFF0000, 0xFF00, 0xFF),
        "rgba": (32, 0xFF, 0xFF00, 0xFF0000, 0xFF000000), "zeros": (32, 0, 0, 0, 0), "24": (24, 0xFF0000, 0xFF00, 0xFF, 0),
        "565": (16, 0xF800, 0x7E0, 0x1F, 0), "555": (16, 0x7C00, 0x3E0, 0x1F, 0x8000),
    }
    for name, (bits, *masks) in layouts.items():
        FILES[f"masks_{name}_v5.bmp"] = bmp(bits, *size, compression=3, header=124, masks=struct.pack("<IIII", *masks))
        if masks[3] == 0:
            FILES[f"masks_{name}.bmp"] = bmp(bits, *size, compression=3, palette=struct.pack("<III", *masks[:3]))
    for bits, compression in ((8, 1), (4, 2)):
        palette = RNG.bytes(4 << bits)
        FILES[f"runs_{bits}.bmp"] = bmp(bits, *size, run_lengths(bits, *size), palette, compression=compression)
        FILES[f"runs_{bits}_down.bmp"] = bmp(bits, *size, run_lengths(bits, *size), palette, compression=compression, down=True)
        refuse(f"runs_{bits}_odd.bmp", bmp(bits, *size, run_lengths(bits, *size), palette + b"?", compression=compression),
               "ENOTSUP", "from an odd byte on")
        refuse(f"runs_{bits}_skip.bmp", bmp(bits, *size, b"\0\2\1\1" * 99, palette, compression=compression), "ENOTSUP",
               "skips (delta)")
        refuse(f"runs_{bits}_short.bmp", bmp(bits, *size, b"\5\1\0\1", palette, compression=compression), "EBADMSG",
               "BMP: the pixels end before the picture does")
    refuse("runs_4_half.bmp", bmp(4, *size, b"\0\5abc\0" * 99, RNG.bytes(64), compression=2), "ENOTSUP", "an odd number of single")
    black_white = b"\0\0\0\0\xff\xff\xff\0"
    refuse("palette_8_of_2_greys.bmp", bmp(8, *size, palette=black_white, n_colors=2), "ENOTSUP", "a grey palette of 2 colours")
    refuse("masks_unknown.bmp", bmp(16, *size, compression=3, palette=struct.pack("<III", 0xF00, 0xF0, 0xF)), "ENOTSUP",
           "16 bits a pixel with the masks 00000f00")
    refuse("bits_2.bmp", bmp(2, *size, palette=RNG.bytes(16)), "ENOTSUP", "BMP: 2 bits a pixel")
    refuse("header_52.bmp", bmp(24, *size, header=52), "ENOTSUP", "BMP: a header of 52 bytes")
    refuse("png_inside.bmp", bmp(24, *size, compression=5), "ENOTSUP", "BMP: compression 5")
    refuse("no_pixels.bmp", bmp(24, 0, 9), "EBADMSG", "BMP: the header says 0 x 9 pixels")
    refuse("giant_header.bmp", bmp(1, 1 << 17, 1 << 17, b"", bytes(8)), "EFBIG", "131072 x 131072 = 17179869184")
    CUTS["pillow_rgb.bmp"] = CUTS["runs_8.bmp"] = CUTS["palette_4.bmp"] = 4 # the last row's padding, the end mark


def pnms():
    rgb = Image.fromarray(photo(19, 13))
    deep = Image.fromarray(RNG.integers(0, 700, (13, 19)).astype(np.int32))
    for name, image in (("rgb.ppm", rgb), ("grey.pgm", rgb.convert("L")), ("bits.pbm", rgb.convert("1")), ("deep.pgm", deep)):
        save("pillow_" + name, image, "PPM")
    for maximum in (1, 2, 6, 100, 254, 256, 1000, 65535):
        for kind, channels in ((5, 1), (6, 3)):
            width = 2 if maximum > 255 else 1
            pixels = RNG.bytes(19 * 13 * channels * width)  # above the maximum, too
            FILES[f"max_{maximum}.p{'gp'[kind - 5]}m"] = b"P%d\n19 13\n%d\n" % (kind, maximum) + pixels
            words = RNG.integers(0, maximum + 1, 19 * 13 * channels)
            text = b"".join(b"%d%s" % (word, (b" ", b"\n", b" # a comment\n ")[int(RNG.integers(0, 3))]) for word in words[:99])
            text += b" ".join(b"%d" % word for word in words[99:]) + b"\n"
            FILES[f"text_{maximum}.p{'gp'[kind - 5]}m"] = b"P%d 19 13 %d " % (kind - 3, maximum) + text
    FILES["text.pbm"] = b"P1\n# bits\n7 3\n0110100 1#one\n 0 1 0 1 1 1\n1110001"
    FILES["comments.ppm"] = b"P6 # a\n#b\n 3#c\n\t2 # d\n255\n" + RNG.bytes(18)
    FILES["comment_within.ppm"] = b"P6\n1#c\n2 2\n255\n" + RNG.bytes(72)
    FILES["no_blank_at_end.pgm"] = b"P2 3 1 9 1 2 3"
    refuse("value_too_large.pgm", b"P2 3 1 9 1 10 3 ", "EBADMSG", "PNM: the value 10 is larger than the header's 9")
    refuse("letters.pgm", b"P2 3 1 9 1 x 3 ", "EBADMSG", "PNM: byte 78 where a number is expected")
    refuse("not_a_bit.pbm", b"P1 3 1 012", "EBADMSG", "PNM: byte 32 where a bit is expected")
    refuse("long_number.pgm", b"P2 3 1 9 1 00000000002 3 ", "EBADMSG", "more than 10 digits")
    refuse("max_0.pgm", b"P5 3 1 0 abc", "EBADMSG", "PNM: the header says 0 as the largest value")
    refuse("max_65536.pgm", b"P5 3 1 65536 abcdef", "EBADMSG", "PNM: the header says 65536 as the largest value")
    refuse("no_pixels.pgm", b"P5 0 1 255 ", "EBADMSG", "PNM: the header says 0 x 1 pixels")
    refuse("cut_in_header.ppm", b"P6 3 ", "EBADMSG", "PNM: the file ends within its header")
    refuse("pam.ppm", b"P7\nWIDTH 3\n", "ENOTSUP", "the file is PAM")
    refuse("giant_header.ppm", b"P6 99999 99999 255 ", "EFBIG", "99999 x 99999 = 9999800001")
    CUTS["pillow_rgb.ppm"] = CUTS["pillow_deep.pgm"] = CUTS["pillow_bits.pbm"] = None


def gifs():
    rgb = Image.fromarray(photo(19, 13))
    palette = rgb.quantize(90)
    save("plain.gif", palette, "GIF", interlace=0)
    save("interlaced.gif", palette, "GIF", interlace=1)
    save("grey.gif", rgb.convert("L"), "GIF")
    save("bilevel.gif", rgb.convert("1"), "GIF")
    save("transparent.gif", palette, "GIF", transparency=3)
    frames = [Image.fromarray(photo(19, 13)).quantize(50) for _ in range(3)]
    save("animation.gif", frames[0], "GIF", save_all=True, append_images=frames[1:], duration=50, loop=0, comment=b"moves")
    one = rgb.quantize(4)
    plain = save("few.gif", one, "GIF", interlace=0)
    at = plain.index(b",", 13 + 3 * 4)
    frame = plain[at + 10:]

    def placed(x, y, flags=0, local=b"", screen=(30, 25), control=b"", colors=plain[13:25]):
        """The frame at a place of a canvas."""
        head = plain[:6] + struct.pack("<HHBBB", *screen, 0x81 if colors else 0, 0, 0) + colors
        return head + control + struct.pack("<BHHHHB", 44, x, y, 19, 13, flags) + local + frame

    control = b"!\xf9\4\1\0\0\2\0"
    FILES["offset.gif"] = placed(7, 5)
    FILES["offset_transparent.gif"] = placed(7, 5, control=control)
    FILES["offset_interlaced.gif"] = placed(7, 5, 0x40)
    FILES["beyond_canvas.gif"] = placed(20, 17, control=control)
    FILES["local_palette.gif"] = placed(7, 5, 0x81, RNG.bytes(12))
    FILES["local_palette_alone.gif"] = placed(0, 0, 0x81, RNG.bytes(12), colors=b"")
    ramp = bytes([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    FILES["local_grey_ramp.gif"] = placed(7, 5, 0x81, ramp, colors=ramp)
    refuse("local_grey_among_colors.gif", placed(7, 5, 0x81, ramp), "ENOTSUP", "a frame with a grey palette in a file of other")
    FILES["no_palette.gif"] = placed(7, 5, colors=b"")
    FILES["palette_short.gif"] = placed(7, 5, 0x80, RNG.bytes(6))
    save("size_1x1.gif", rgb.crop((0, 0, 1, 1)).quantize(2), "GIF")
    refuse("no_frame.gif", plain[:at] + b";", "EBADMSG", "GIF: the file has no frame")
    refuse("cut_in_data.gif", FILES["plain.gif"][:-60], "EBADMSG", "GIF: ")
    refuse("cut_in_header.gif", FILES["plain.gif"][:30], "EBADMSG", "GIF: ")
    refuse("giant_header.gif", placed(0, 0, screen=(65535, 65535)), "EFBIG", "65535 x 65535 = 4294836225")
    CUTS["plain.gif"] = CUTS["interlaced.gif"] = CUTS["animation.gif"] = 3 # the end mark


def convert(name, source, *options):
    """ImageMagick's writer: layouts that Pillow does not write."""
    stream = io.BytesIO()
    source.save(stream, "PNG")
    command = ["convert-im6.q16", "png:-", "-strip", *options, "tif:-"]
    FILES[name] = subprocess.run(command, input=stream.getvalue(), capture_output=True, check=True).stdout
    return FILES[name]


def tiffs():
    size = (37, 21)
    rgb = Image.fromarray(photo(*size))
    rgba = Image.fromarray(photo(*size, 4), "RGBA")
    modes = {
        "bilevel": rgb.convert("1"), "grey": rgb.convert("L"), "palette": rgb.quantize(90), "rgb": rgb, "rgba": rgba,
        "grey_alpha": rgba.convert("LA"), "cmyk": Image.fromarray(photo(*size, 4), "CMYK"),
        "grey_16": Image.fromarray(RNG.integers(0, 600, size[::-1]).astype(np.uint16)),
        "grey_32": Image.fromarray(RNG.integers(-300, 600, size[::-1]).astype(np.int32)),
        "float": Image.fromarray((RNG.random(size[::-1]) * 600 - 100).astype(np.float32)),
    }
    for name, image in modes.items():
        for compression in (None, "tiff_lzw"):
            save(f"pillow_{name}_{compression or 'plain'}.tif", image, "TIFF", compression=compression)
    for compression in ("tiff_adobe_deflate", "tiff_deflate", "packbits", "jpeg"):
        save(f"pillow_rgb_{compression}.tif", rgb, "TIFF", compression=compression)
    for name in ("grey", "cmyk"):
        save(f"pillow_{name}_jpeg.tif", modes[name], "TIFF", compression="jpeg")
    save("pillow_ycbcr_jpeg.tif", rgb.convert("YCbCr"), "TIFF", compression="jpeg")
    for compression in ("group3", "group4", "tiff_ccitt"):
        save(f"pillow_{compression}.tif", modes["bilevel"], "TIFF", compression=compression)
    for orientation in range(1, 9):
        for compression in (None, "packbits"):
            save(f"orientation_{orientation}_{compression or 'plain'}.tif", rgb, "TIFF", compression=compression,
                 tiffinfo={0x0112: orientation})
    pages = [Image.fromarray(photo(9, 7)), rgb]
    save("pages.tif", pages[0], "TIFF", save_all=True, append_images=pages[1:])
    for depth in ("8", "16"):
        for name, image in (("rgb", rgb), ("rgba", rgba)):
            convert(f"tiles_{name}_{depth}.tif", image, "-depth", depth, "-define", "tiff:tile-geometry=16x16", "-compress", "Zip")
            convert(f"big_endian_{name}_{depth}.tif", image, "-depth", depth, "-endian", "MSB", "-compress", "None")
    convert("tiles_jpeg.tif", rgb, "-define", "tiff:tile-geometry=16x16", "-compress", "JPEG")
    convert("planes.tif", rgba, "-interlace", "plane", "-compress", "LZW", "-define", "tiff:rows-per-strip=5")
    convert("planes_tiles.tif", rgb, "-interlace", "plane", "-compress", "Zip", "-define", "tiff:tile-geometry=16x16")
    convert("strips_of_5.tif", rgb, "-compress", "LZW", "-define", "tiff:rows-per-strip=5")
    convert("multiplied.tif", rgba, "-compress", "Zip", "-define", "tiff:alpha=associated")
    convert("low_bit_first.tif", rgb, "-compress", "LZW", "-define", "tiff:fill-order=lsb")
    convert("palette_tiles.tif", rgb.quantize(50), "-type", "Palette", "-compress", "None", "-define", "tiff:tile-geometry=16x16")
    convert("bits_white_is_0.tif", modes["bilevel"], "-define", "quantum:polarity=min-is-white", "-compress", "Group4")
    plain = FILES["pillow_rgb_plain.tif"]
    if plain[:4] != b"II*\0":
        sys.exit("Pillow writes another byte order")
    refuse("lzma.tif", save("lzma.tif", rgb, "TIFF", compression="lzma"), "ENOTSUP", "TIFF: compression 34925 is not handled")
    refuse("ycbcr_lzw.tif", save("ycbcr_lzw.tif", rgb.convert("YCbCr"), "TIFF", compression="tiff_lzw"), "ENOTSUP",
           "TIFF: photometric 6 with 3 samples of 8 bits")
    planes = convert("planes_16.tif", rgb, "-depth", "16", "-interlace", "plane", "-compress", "LZW")
    refuse("planes_16.tif", planes, "ENOTSUP", "with 3 samples of 16 bits (format 1, 0 extra, planes 2")
    refuse("cut_in_data.tif", save("cut_in_data.tif", rgb, "TIFF", compression="tiff_lzw")[:-300], "EBADMSG", "TIFF: ")
    refuse("no_directory.tif", b"II*\0\0\0\0\0", "EBADMSG", "TIFF: ")
    refuse("directory_outside.tif", b"II*\0\xff\xff\xff\0" + bytes(40), "EBADMSG", "TIFF: ")
    giant = plain.replace(struct.pack("<HHII", 256, 4, 1, 37), struct.pack("<HHII", 256, 4, 1, 99999))
    giant = giant.replace(struct.pack("<HHII", 257, 4, 1, 21), struct.pack("<HHII", 257, 4, 1, 99999))
    refuse("giant_header.tif", giant, "EFBIG", "99999 x 99999 = 9999800001")
    CUTS["strips_of_5.tif"] = CUTS["pillow_rgb_plain.tif"] = CUTS["pillow_group4.tif"] = None


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return "%016x" % value


def read(data):
    """Pillow's pixels, or None."""
    try:
        return np.asarray(today(Image.open(io.BytesIO(data))).convert("RGB"))
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
    bmps(), pnms(), gifs(), tiffs()
    lines = []
    for name, data in FILES.items():
        with open(os.path.join(OUT, name), "wb") as file:
            file.write(data)
        pixels = None if ERRORS.get(name, ("",))[0] == "EFBIG" else read(data)
        if name in ERRORS:
            error, says = ERRORS[name]
            if pixels is not None and error != "ENOTSUP": # Pillow reads a few that ours does not
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

#!/usr/bin/env python3
"""The bytes that arrive: files untouched, pixels as Pillow and torchvision make them, crops that depend on the sample
alone."""
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from harness import (Skip, Table, case, check_bytes, check_sequence, equal, identity_pixels, indices, main, photos, samples_of,
                     write)
from pillow_resize import rows_first

N_PHOTOS, N_CLASSES = 40, 4


def pillow():
    try:
        from PIL import Image
        rows_first(Image)
        return Image
    except ImportError as error:
        raise Skip("Pillow is not installed for this python3") from error


def digest(pixels):
    return hashlib.sha256(pixels).hexdigest()


def check_pixels(line, pixels, shape):
    field = line["fields"]["image"]
    equal((field["dtype"], field["shape"]), ("uint8", shape), f"sample {line['index']}")
    equal(field["sha256"], digest(pixels), f"pixels of sample {line['index']}")


def odd_pictures(folder):
    """Every kind of picture that is easily got wrong and that Pillow reads; names that lie among them."""
    image = pillow()
    source = image.frombytes("RGB", (61, 47), identity_pixels(1, 61, 47)).resize((122, 94), image.BICUBIC)
    grey = source.convert("L")
    alpha = source.convert("RGBA")
    alpha.putalpha(grey)
    palette = source.convert("P", palette=image.ADAPTIVE, colors=100)
    wide = image.new("I;16", (40, 30))
    wide.putdata([(number * 53) % 65536 for number in range(1200)])
    pictures = {
        "a444.jpg": (source, "JPEG", {"subsampling": 0, "quality": 90}),
        "b422.jpg": (source, "JPEG", {"subsampling": 1, "quality": 80}),
        "c420.jpg": (source, "JPEG", {"subsampling": 2, "quality": 70}),
        "d_progressive.jpg": (source, "JPEG", {"progressive": True, "quality": 75}),
        "e_grey.jpg": (grey, "JPEG", {}),
        "f_cmyk.jpg": (source.convert("CMYK"), "JPEG", {}),
        "g_rgb.png": (source, "PNG", {}),
        "h_grey.png": (grey, "PNG", {}),
        "i_alpha.png": (alpha, "PNG", {}),
        "j_palette.png": (palette, "PNG", {}),
        "k_palette4.png": (source.convert("P", palette=image.ADAPTIVE, colors=13), "PNG", {"bits": 4}),
        "l_bilevel.png": (source.convert("1"), "PNG", {}),
        "m_transparent.png": (palette, "PNG", {"transparency": 3}),
        "n_grey_alpha.png": (alpha.convert("LA"), "PNG", {}),
        "o_16bit_grey.png": (wide, "PNG", {}),
        "p_lossless.webp": (source, "WEBP", {"lossless": True}),
        "q_lossy.webp": (source, "WEBP", {"quality": 70}),
        "r_alpha.webp": (alpha, "WEBP", {"lossless": True, "exact": True}),
        "s_png_named.jpg": (source, "PNG", {}),
        "t_webp_named.jpeg": (source, "WEBP", {"lossless": True}),
        "u_jpeg_named.png": (source, "JPEG", {}),
        "v_one_pixel.png": (source.crop((3, 3, 4, 4)), "PNG", {}),
        "w_thin.jpg": (source.crop((0, 0, 122, 1)), "JPEG", {}),
        "xa_rgb.bmp": (source, "BMP", {}),
        "xb_palette.bmp": (palette, "BMP", {}),
        "xc_bilevel.bmp": (source.convert("1"), "BMP", {}),
        "xd_alpha.bmp": (alpha, "BMP", {}),
        "xe_rgb.ppm": (source, "PPM", {}),
        "xf_grey.pgm": (grey, "PPM", {}),
        "xg_bits.pgm": (source.convert("1"), "PPM", {}),
        "xh_deep.pgm": (wide.convert("I"), "PPM", {}),
        "xi_rgb.tif": (source, "TIFF", {}),
        "xj_lzw.tiff": (source, "TIFF", {"compression": "tiff_lzw"}),
        "xk_deflate.tif": (alpha, "TIFF", {"compression": "tiff_adobe_deflate"}),
        "xl_packbits.tif": (palette, "TIFF", {"compression": "packbits"}),
        "xm_jpeg.tif": (source, "TIFF", {"compression": "jpeg"}),
        "xn_cmyk.tif": (source.convert("CMYK"), "TIFF", {"compression": "tiff_lzw"}),
        "xo_16bit.tif": (wide, "TIFF", {}),
        "xp_fax.tif": (source.convert("1"), "TIFF", {"compression": "group4"}),
        "xq_on_its_side.tif": (source, "TIFF", {"tiffinfo": {0x0112: 6}}),
        "xr_gif_named.jpg": (palette, "GIF", {"interlace": 1}),
        "xs_transparent_gif_named.jpg": (palette, "GIF", {"interlace": 0, "transparency": 3}),
    }
    os.makedirs(os.path.join(folder, "kinds"))
    for name, (picture, kind, keywords) in pictures.items():
        picture.save(os.path.join(folder, "kinds", name), kind, **keywords)


def cameras_pictures(folder):
    """A picture in each orientation and format that notes one; some whose EXIF is odd or cut."""
    image = pillow()
    source = image.frombytes("RGB", (61, 47), identity_pixels(1, 61, 47)).resize((122, 94), image.BICUBIC)
    os.makedirs(os.path.join(folder, "kinds"))
    for number in range(10):  # 9 has no meaning
        exif = image.Exif()
        exif[0x010F] = "a camera"
        if number > 0:
            exif[0x0112] = number
        for name, kind, keywords in (("jpg", "JPEG", {"quality": 90}), ("png", "PNG", {}), ("webp", "WEBP", {"lossless": True})):
            source.save(os.path.join(folder, "kinds", f"{number}.{name}"), kind, exif=exif, **keywords)
    source.save(os.path.join(folder, "kinds", "big_endian.jpg"), "JPEG", quality=90,
                exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0")
    source.save(os.path.join(folder, "kinds", "cut.jpg"), "JPEG", quality=90, exif=b"Exif\0\0II*\0\x08\0\0\0\x09\0\x12")
    source.convert("L").save(os.path.join(folder, "kinds", "grey.jpg"), "JPEG", quality=90, exif=exif)


@case("decode(exif=transpose) turns pictures as Pillow's exif_transpose does, before any other step; without it none is turned")
def _(box):
    image = pillow()
    from PIL import ImageOps
    folder = box.path("cameras")
    cameras_pictures(folder)
    daemon = box.daemon({"cameras": folder})
    names = [path for path, _ in samples_of(folder)]

    def read(pipeline):
        lines = daemon.read("cameras", pipeline=pipeline, batch=1, shuffle=False)
        equal(indices(lines), list(range(len(names))), "order")
        return zip(lines, names)

    def upright(name):
        with image.open(name) as picture:
            picture.load()  # PNG: what lies after the pixels
            return ImageOps.exif_transpose(picture).convert("RGB")

    n_turned = 0
    for line, name in read("decode(exif=transpose)"):
        picture = upright(name)
        n_turned += picture.width == 94
        check_pixels(line, picture.tobytes(), [picture.height, picture.width, 3])
    equal(n_turned, 4 * 3 + 1, "pictures on their side")
    for line, name in read("decode(exif=transpose) center_crop(40)"):
        picture = upright(name)
        left, top = (picture.width - 40) // 2, (picture.height - 40) // 2
        check_pixels(line, picture.crop((left, top, left + 40, top + 40)).tobytes(), [40, 40, 3])
    for line, name in read("decode(exif=transpose) resize(32:48) hflip(1)"):
        picture = upright(name).resize((48, 32), image.BILINEAR).transpose(image.FLIP_LEFT_RIGHT)
        check_pixels(line, picture.tobytes(), [32, 48, 3])
    for line, name in read("decode(exif=ignore)"):
        with image.open(name) as picture:
            check_pixels(line, picture.convert("RGB").tobytes(), [94, 122, 3])


@case("raw serves real photographs byte for byte, in the order that torch gives, over three ranks")
def _(box):
    folder = photos(N_PHOTOS, N_CLASSES)
    samples = samples_of(folder)
    equal(len(samples), N_PHOTOS, "photographs")
    daemon = box.daemon({"photos": folder})
    for rank, lines in enumerate(daemon.read_ranks("photos", 3, epochs=2, seed=42, batch=4)):
        check_sequence(lines, N_PHOTOS, batch=4, epochs=2, world=3, rank=rank, seed=42)
        check_bytes(lines, samples)


@case("raw and the real DistributedSampler agree on files and labels")
def _(box):
    try:
        import torch.utils.data.distributed as distributed
        import torchvision.datasets as datasets
    except ImportError as error:
        raise Skip("torch and torchvision are not installed for this python3") from error
    folder = photos(N_PHOTOS, N_CLASSES)
    dataset = datasets.ImageFolder(folder)
    daemon = box.daemon({"photos": folder})
    for rank, lines in enumerate(daemon.read_ranks("photos", 3, epochs=2, first_epoch=5, seed=7)):
        sampler = distributed.DistributedSampler(dataset, num_replicas=3, rank=rank, seed=7)
        expected = []
        for epoch in (5, 6):
            sampler.set_epoch(epoch)
            expected += list(sampler)
        equal(indices(lines), expected, f"indices of rank {rank}")
        check_bytes(lines, dataset.samples)


@case("decode gives the pixels of Pillow's convert('RGB'), for every kind of picture")
def _(box):
    image = pillow()
    folder = box.path("odd")
    odd_pictures(folder)
    daemon = box.daemon({"odd": folder})
    samples = samples_of(folder)
    rows = Table()
    for line in daemon.read("odd", pipeline="decode", shuffle=False):
        path = samples[line["index"]][0]
        with image.open(path) as picture:
            pixels = picture.convert("RGB")
        with rows.row(os.path.basename(path)):
            check_pixels(line, pixels.tobytes(), [pixels.height, pixels.width, 3])
    rows.done()


@case("resize(256) center_crop(224) gives torchvision's pixels, for photographs and for odd pictures")
def _(box):
    image = pillow()
    try:
        from torchvision import transforms
    except ImportError as error:
        raise Skip("torchvision is not installed for this python3") from error
    odd = box.path("odd")
    odd_pictures(odd)
    daemon = box.daemon({"photos": photos(N_PHOTOS, N_CLASSES), "odd": odd})
    rows = Table()
    for name, path in daemon.datasets.items():
        samples = samples_of(path)
        for size, crop in ((256, 224), (64, 64), (40, 57), (300, 33)):
            transform = transforms.Compose([transforms.Resize(size), transforms.CenterCrop(crop)])
            for line in daemon.read(name, pipeline=f"resize({size}) center_crop({crop})", batch=3, shuffle=False):
                with image.open(samples[line["index"]][0]) as picture:
                    pixels = transform(picture.convert("RGB")).tobytes()
                with rows.row((os.path.basename(samples[line["index"]][0]), size, crop)):
                    check_pixels(line, pixels, [crop, crop, 3])
    rows.done()


@case("resize gives Pillow's pixels with each of its filters, for photographs and for odd pictures")
def _(box):
    image = pillow()
    odd = box.path("odd")
    odd_pictures(odd)
    daemon = box.daemon({"photos": photos(N_PHOTOS, N_CLASSES), "odd": odd})
    rows = Table()
    n_compared = 0
    for name, path in daemon.datasets.items():
        pictures = []
        for sample, _ in samples_of(path):
            with image.open(sample) as picture:
                pictures.append(picture.convert("RGB"))
        for interpolation in ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"):
            for height, width in ((224, 224), (47, 122), (94, 61), (333, 517)):
                pipeline = f"resize({height}:{width}, interpolation={interpolation})"
                for line in daemon.read(name, pipeline=pipeline, batch=3, shuffle=False):
                    pixels = pictures[line["index"]].resize((width, height), getattr(image, interpolation.upper()))
                    with rows.row((name, line["index"], pipeline)):
                        check_pixels(line, pixels.tobytes(), [height, width, 3])
                    n_compared += 1
    print(f"{n_compared} pictures compared")
    rows.done()


@case("a random crop depends on seed, epoch and sample alone: not on world, batch, workers, slots or partition")
def _(box):
    folder = photos(N_PHOTOS, N_CLASSES)
    pipeline = "random_resized_crop(224) hflip(0.5)"
    known = {}
    for workers, reader, runs in ((1, "threads", ((1, 1, 2, "pad"), (3, 7, 4, "pad"))),
                                  (2, "auto", ((2, 16, 8, "exact"), (5, 3, 3, "drop")))):
        daemon = box.daemon({"photos": folder}, workers=workers, reader=reader)
        for world, batch, slots, partition in runs:
            for lines in daemon.read_ranks("photos", world, batch=batch, slots=slots, partition=partition, seed=3,
                                           epochs=2, pipeline=pipeline):
                for line in lines:
                    place = (line["epoch"], line["index"])
                    sha256 = line["fields"]["image"]["sha256"]
                    equal(sha256, known.setdefault(place, sha256), f"pixels of (epoch, sample) {place}")
    equal(len(known), 2 * N_PHOTOS, "every sample of both epochs was seen")
    equal(len(set(known.values())), 2 * N_PHOTOS, "and no two crops are alike")
    other = daemon.read("photos", seed=4, pipeline=pipeline)
    n_alike = sum(line["fields"]["image"]["sha256"] == known[(0, line["index"])] for line in other)
    equal(n_alike, 0, "crops of another seed that are the same")


@case("hflip(1) is the mirror image, hflip(0) the picture itself")
def _(box):
    width, height = 9, 7
    folder = box.folder_of_pictures("d", 12, width=width, height=height)
    daemon = box.daemon({"d": folder})
    for chance in (0, 1):
        for line in daemon.read("d", pipeline=f"decode hflip({chance})", batch=4):
            pixels = identity_pixels(line["index"], width, height)
            if chance:
                rows = [pixels[row * width * 3:(row + 1) * width * 3] for row in range(height)]
                pixels = b"".join(row[place * 3:place * 3 + 3] for row in rows for place in reversed(range(width)))
            check_pixels(line, pixels, [height, width, 3])


@case("names that are not ASCII, links, deep folders and foreign files are taken as ImageFolder takes them")
def _(box):
    folder = box.path("names")
    number = 0
    for name in ("kat/ä.jpg", "kat/b c.JPG", "kat/deep/er/z.png", "Kat/1.jpeg", "éclair/x.webp", "日本/語.png",
                 "kat/notes.txt", "kat/.hidden.jpg", "10/a.bmp", "9/a.tiff", "9/b.jpg.part", "10/'\".jpg"):
        write(os.path.join(folder, name), f"<{name} {number}>".encode())
        number += 1
    write(os.path.join(folder, "at_the_root.jpg"), b"no class")
    os.symlink(os.path.join("..", "kat", "ä.jpg"), os.path.join(folder, "9", "link.jpg"))
    os.symlink(os.path.join("..", "kat", "deep"), os.path.join(folder, "9", "linked_folder"))
    with open(os.path.join(os.fsencode(folder), b"kat", b"not\xff\xfeutf8.jpg"), "wb") as file:
        file.write(b"a name that is no UTF-8")
    expected = samples_of(folder)
    daemon = box.daemon({"names": folder})
    lines = daemon.read("names", shuffle=False, epochs=1)
    equal(len(lines), len(expected), "samples")
    check_bytes(lines, expected)
    try:
        import torchvision.datasets as datasets
    except ImportError:
        return
    equal(expected, datasets.ImageFolder(folder).samples, "our idea of ImageFolder")


main()

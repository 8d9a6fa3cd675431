"""Pillow's resize() in the sequence of its two passes that the daemon has: rows first, then columns, each rounded to 8
bits.

Pillow 2.7 to 12 do that with every picture. Pillow 13 begins with the columns where that saves it time: if the height
shrinks, and by more than twice as many pixels as the width does. Then a value in four differs, nearly always by one
level. Both are right; the daemon keeps to the older sequence, so that a pipeline's samples stay what they are. With
rows_first() the newer Pillow makes two calls of it, and so gives the same bits as the older ones.
"""


def begins_with_columns(old, new):
    """Does Pillow 13 resize a picture of this (width, height) to that in the other sequence?"""
    return new[1] < old[1] and old[1] - new[1] > 2 * (old[0] - new[0])


def rows_first(image):
    """Once for each process: `image` is the module PIL.Image, whose resize() it replaces if it is the newer one."""
    import PIL
    both = image.Image.resize
    if int(PIL.__version__.split(".")[0]) < 13 or both.__name__ == "resize_rows_first":
        return
    premultiplied = {"RGBA": "RGBa", "LA": "La"}

    def resize_rows_first(self, size, resample=None, box=None, reducing_gap=None):
        if box is not None or reducing_gap is not None or resample == image.NEAREST:
            return both(self, size, resample, box, reducing_gap)
        if self.mode in premultiplied:
            return resize_rows_first(self.convert(premultiplied[self.mode]), size, resample).convert(self.mode)
        return both(both(self, (size[0], self.height), resample), size, resample)

    image.Image.resize = resize_rows_first

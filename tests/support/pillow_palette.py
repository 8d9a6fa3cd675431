"""Palettes as Pillow has them from 10.1 on: an index that the file's palette does not have is black; it was grey before."""
RAW_MODES = ("RGB", "BGR", "BGRX")


def today(picture):
    """A picture that was just opened, of any release."""
    for palette in (picture.palette, getattr(picture, "_frame_palette", None)):
        if palette and palette.rawmode in RAW_MODES:
            palette.palette = bytes(palette.palette).ljust(256 * len(palette.rawmode), b"\0")
    return picture

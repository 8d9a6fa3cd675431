/* augment/steps/step_decode.c: how pictures are decoded, before any other step. */
#include "daemon/augment/recipe/body.h"

#include <errno.h>

/* What is done with the orientation that a camera noted. */
static const char *const EXIF_NAMES[] = { "ignore", "transpose" };

int step_decode_read(struct recipe *recipe, const struct value *values, struct why *why) {
        const struct value *exif = &values[DECODE_EXIF], *mask = &values[DECODE_MASK], *bands = &values[DECODE_BANDS];
        struct conversion *conversion = &recipe->conversion;

        recipe->max_pixels = values[DECODE_MAX_PIXELS].is_set ? (uint64_t)values[DECODE_MAX_PIXELS].list[0] : 0;
        recipe->is_upright = exif->choice == 1;
        recipe->has_mask_dtype = mask->is_given;
        recipe->idx_mask_dtype = mask->choice;
        conversion_set_mode(conversion, (enum pixel_mode)values[DECODE_MODE].choice);
        if (bands->is_set && !conversion_set_bands(conversion, (uint32_t)bands->list[0]))
                return why_set(
                        why, -EINVAL,
                        "pipeline: decode: bands=N needs mode=L for bands of 8 bits, I;16 for bands of 16 bits or F "
                        "for float32");
        if (conversion->format.is_bands && (exif->is_given || mask->is_given))
                return why_set(
                        why, -EINVAL,
                        "pipeline: decode: exif and mask are for pictures, and with mode=F or bands=N numbers are "
                        "delivered as they are stored: leave them out");
        return 0;
}

const struct step_type step_decode = {
        .kind = { .name = "decode",
                  .doc = "Delivers the pixels as they are. It may also precede other steps, for its arguments. "
                         "`max_pixels` is for pipelines whose result depends on the picture: it says how many "
                         "pixels a result has at most, and slots get room for that. Without it a ring gets a "
                         "sixteenth of the setting memory_limit (at least 64 MiB). A picture with more pixels is a "
                         "damaged sample, and the message says the number that it needs.\n\n"
                         "`exif=transpose` turns pictures upright as the Orientation says that a camera noted in "
                         "EXIF, in JPEG, PNG and WebP, with the pixels of Pillow's ImageOps.exif_transpose(). "
                         "Without it, pictures stay as they are stored, as in Pillow and torchvision. Boxes, points "
                         "and masks cannot be moved with a picture that is turned so.\n\n"
                         "`mode` says which channels a picture has, with the numbers of Pillow's convert(). RGB of "
                         "one channel of 16 bits or floats is what Pillow makes of it: values above 255 become 255. "
                         "Where some of the first pictures that are looked at begin so (PNG, PGM, TIFF; files, "
                         "members of archives, columns of bytes), a warning says so when the dataset is opened, and "
                         "names `decode(mode=I;16)` or `decode(mode=F)`. Batches have as many channels, also if it "
                         "is one: height x width x 1.\n\n"
                         "- `L`: Grey: 0.299 red + 0.587 green + 0.114 blue as Pillow rounds it; files of grey stay "
                         "as they are stored.\n\n"
                         "- `RGBA`, `LA`: Colours or grey, and alpha: of PNG (also the transparent indices or "
                         "colour of tRNS), WebP, TIFF, BMP and the transparent index of GIF; 255 elsewhere. Pixels "
                         "that are mixed weigh as much as they are opaque, as in Pillow's resize(). `fill` is one "
                         "number for all channels. A picture with alpha is decoded twice, and its needed part is "
                         "kept in memory. PNG of 2, 4 or 16 bits with a transparent colour, of which Pillow has "
                         "another notion than the standard, are damaged samples.\n\n"
                         "- `P`: The numbers that are stored: indices of a palette, or grey of at most 8 bits (0 "
                         "and 1 if it has one bit), of PNG, GIF, BMP, TIFF, PBM and PGM; other pictures are damaged "
                         "samples. They are never mixed: resizing chooses pixels as Pillow's nearest does, whatever "
                         "`interpolation` says.\n\n"
                         "- `I;16`: Grey of 16 bits of PNG, TIFF and PGM as uint16; other pictures are damaged "
                         "samples. They are never mixed: a resize or a rotation needs `interpolation=nearest`.\n\n"
                         "- `F`: The numbers of a TIFF of one band as float32, whatever their type is: floats, and "
                         "signed or unsigned numbers of 8 to 32 bits.\n\n"
                         "`bands=N`, with a `mode`, delivers the numbers of a TIFF with N bands (1 to 1024) as they "
                         "are stored: height x width x N, with `mode=L` as uint8, with `mode=I;16` as uint16, and "
                         "with `mode=F` as float32 whatever their type is. They may mean anything: Orientation, "
                         "palettes, alpha and which level is white change nothing. A picture with another number of "
                         "bands or, without F, of another type is a damaged sample. No other step can be used with "
                         "`bands` or with `mode=F`.\n\n"
                         "Steps that change colours are for RGB and L; `sharpness` and `color_jitter` without hue "
                         "also for RGBA and LA. Masks and boxes of the same part are what they are without `mode`.\n\n"
                         "`mask` says the dtype of the masks of its part, whatever the dtype of the picture is: "
                         "uint8, uint16, int32 or int64.",
                  .example = "decode(max_pixels=1000000)",
                  .arguments = ARGUMENTS([DECODE_MAX_PIXELS] = { ARGUMENT_LIST, "max_pixels", NULL, 1,
                                                                 RECIPE_MAX_PIXELS_MAX, .counts = 1u << 1,
                                                                 .is_whole = true, .form = "N", .is_optional = true },
                                         [DECODE_EXIF] = { ARGUMENT_CHOICE, "exif", "ignore", .choices = EXIF_NAMES,
                                                           .n_choices = 2 },
                                         [DECODE_MODE] = { ARGUMENT_CHOICE, "mode", "RGB", .choices = PIXEL_MODE_NAMES,
                                                           .n_choices = N_PIXEL_MODES },
                                         [DECODE_MASK] = { ARGUMENT_CHOICE, "mask", "uint8",
                                                           .choices = MASK_DTYPE_NAMES, .n_choices = N_MASK_DTYPES },
                                         [DECODE_BANDS] = { ARGUMENT_LIST, "bands", NULL, 1, RECIPE_BANDS_MAX,
                                                            .counts = 1u << 1, .is_whole = true, .form = "N",
                                                            .is_optional = true }) },
};

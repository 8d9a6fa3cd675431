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
                  .doc = "Decodes; written for its arguments, or alone for the unchanged pixels.",
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

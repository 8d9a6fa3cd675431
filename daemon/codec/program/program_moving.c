/* codec/program/program_moving.c: what moves with the picture of its part: masks, boxes, points, and what leaves with boxes. */
#include "daemon/codec/program/program_body.h"

#include <errno.h>
#include <string.h>

#include "daemon/augment/recipe.h"
#include "daemon/codec/masks/array_mask.h"
#include "daemon/codec/masks/mask_name.h"

bool moves_along(const struct codec *codec) {
        return codec_is_boxes(codec) || codec_is_points(codec) || codec_is_mask(codec) || codec_is_planes(codec);
}

/* An array of several rows may be boxes or points. */
bool is_beside_picture(const struct schema_field *field, const struct codec_steps *steps) {
        return steps && steps->list.n > 0 && recipe_has(steps->list.at[0].name) &&
               (field->kind == FIELD_NUMBER || field->kind == FIELD_TEXT ||
                (field->kind == FIELD_VALUE && field->n_dims <= 1));
}

static uint32_t count_fields(const struct program *program, uint32_t begin, bool (*is)(const struct codec *codec),
                             uint32_t *ret_idx_last) {
        uint32_t n = 0;

        for (uint32_t i = begin; i < program->n_fields; i++)
                if (is(program->codecs[i])) {
                        n++;
                        *ret_idx_last = i;
                }
        return n;
}

int check_mask_dtype(const struct program *program, const struct source *source, uint32_t begin, struct why *why) {
        const char *dtype = codec_mask_dtype(program->codecs[begin]);
        uint32_t idx = 0;

        if (!dtype)
                return 0;
        if (count_fields(program, begin, codec_is_planes, &idx) > 0)
                return why_set(why, -EINVAL,
                               "pipeline: field %s is masks of instances, which are delivered as uint8: leave mask=%s "
                               "out, or name the field in a part of its own",
                               source->schema.fields[codec_field(program->codecs[idx])].name, dtype);
        if (count_fields(program, begin, codec_is_mask, &idx) == 0)
                return why_set(why, -EINVAL,
                               "pipeline: mask=%s is for masks, and its part names none: name one with its picture, as "
                               "in \"image, mask: decode(mask=%s)\"",
                               dtype, dtype);
        return 0;
}

int refuse_dropping(uint32_t n_boxes, struct why *why) {
        return why_set(
                why, -EINVAL,
                "pipeline: sanitize drops boxes, and its part names %s; name one field of boxes with the picture, "
                "as in \"image, boxes, labels: hflip(0.5) sanitize\"",
                n_boxes == 0 ? "none" : "several fields of them");
}

/* A part drops boxes: are there some, and is it clear which ones decide about the rows of other fields? */
static int check_dropping(const struct program *program, uint32_t begin, uint32_t n_boxes, struct why *why) {
        for (uint32_t i = 0; i < begin; i++)
                if (codec_drops_boxes(program->codecs[i]))
                        return why_set(why, -EINVAL,
                                       "pipeline: sanitize is in two parts; only one of them may have it");
        return n_boxes == 1 ? 0 : refuse_dropping(n_boxes, why);
}

int refuse_needing(uint32_t n_boxes, struct why *why) {
        return why_set(why, -EINVAL,
                       "pipeline: random_iou_crop looks at boxes, and its part names %s; name one field of boxes with "
                       "the picture, as in \"image, boxes, labels: random_iou_crop sanitize\"",
                       n_boxes == 0 ? "none" : "several fields of them");
}

void find_masks(struct program *program, const struct source *source, uint32_t begin) {
        uint32_t n_masks = 0, ignored = 0, n_pictures = count_fields(program, begin, codec_is_picture, &ignored);

        for (unsigned pass = 0; pass < 2; pass++)
                for (uint32_t i = begin; i < program->n_fields; i++) {
                        struct codec *codec = program->codecs[i];

                        if (!codec_is_picture(codec) || !mask_is_name(source->schema.fields[codec_field(codec)].name))
                                continue;
                        if (pass == 0)
                                n_masks++;
                        else if (n_masks < n_pictures)
                                codec_set_mask(codec);
                }
}

int lead_fields(struct program *program, const struct source *source, uint32_t begin, struct why *why) {
        uint32_t idx_picture = 0, idx_boxes = 0;
        uint32_t n_pictures = count_fields(program, begin, codec_is_picture, &idx_picture);
        uint32_t n_boxes = count_fields(program, begin, codec_is_boxes, &idx_boxes);
        bool drops = codec_drops_boxes(program->codecs[begin]);
        bool needs = codec_needs_boxes(program->codecs[begin]);
        int r = drops ? check_dropping(program, begin, n_boxes, why) : 0;

        if (r == 0 && needs && n_boxes != 1)
                r = refuse_needing(n_boxes, why);

        for (uint32_t i = begin; i < program->n_fields && r == 0; i++) {
                const struct schema_field *field = &source->schema.fields[codec_field(program->codecs[i])];
                const char *name = field->name;
                struct codec *codec = program->codecs[i];
                bool moves = moves_along(codec);

                if (moves && n_pictures != 1)
                        return why_set(
                                why, -EINVAL,
                                "pipeline: field %s moves with a picture, and its part names %s; name one picture "
                                "with it, as in \"image, %s: hflip(0.5)\", or name it without steps",
                                name, n_pictures == 0 ? "none" : "several", name);
                if (moves && codec_is_upright(program->codecs[idx_picture]))
                        return why_set(
                                why, -EINVAL,
                                "pipeline: field %s belongs to the picture as it is stored, and decode(exif=transpose) "
                                "would turn the picture alone: leave exif out, or name %s in a part of its own",
                                name, name);
                if (codec_is_of_boxes(codec) && !moves && n_boxes == 0 && array_mask_may_be(field))
                        return why_set(why, -EINVAL,
                                       "pipeline: field %s is a mask by its name, and an array of %s: begin the steps "
                                       "with decode(mask=D) and a dtype, uint8, uint16, int32 or int64",
                                       name, dlp_dtype_name(field->dtype));
                if (codec_is_of_boxes(codec) && !moves && n_boxes == 0)
                        return why_set(
                                why, -EINVAL,
                                "pipeline: field %s is an array, and the steps are for pictures; name it without "
                                "steps to get its elements, with to(DTYPE) to convert them, or with raw to get "
                                "its stored bytes",
                                name);
                if (moves)
                        codec_set_lead(codec, idx_picture);
                if (needs)
                        codec_set_plan_boxes(codec, idx_boxes);
                if ((codec_is_of_boxes(codec) || codec_is_planes(codec)) && drops)
                        codec_set_boxes(codec, idx_boxes);
        }
        return r;
}

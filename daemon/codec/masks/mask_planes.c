/* Masks of instances: n planes, one for each box, in a part with the picture that they belong to. Each moves as a mask
 * does (codec/mask.c), and where the part drops boxes, their planes leave with them. Delivered as n x height x width.
 * They are an array, or are drawn from the segmentations of annotations (segments.h).
 *
 * Moving, mirroring and padding do to each channel of a picture the same. So three planes are moved at a time, as the
 * channels of one picture. */

#include "daemon/codec/masks/mask_planes.h"

#include <errno.h>
#include <string.h>

#include "daemon/codec/masks/channels.h"
#include "daemon/codec/masks/mask_name.h"
#include "daemon/codec/masks/segments.h"
#include "daemon/data/formats/npy_header.h"
#include "proto/base/shown/amounts.h"

#define N_TOGETHER N_CHANNELS /* planes that are moved at once */

#define SEGMENTS_BYTES_MAX (64u << 20)  /* of a sample: that of COCO with most has a tenth of a megabyte */
#define DRAWN_PIXELS_MAX   (1ull << 32) /* of a sample: drawing them takes seconds */

/* ---- which fields ---------------------------------------------------------------------------------------------- */

static bool is_byte(uint32_t dtype) {
        return dtype == DLP_DTYPE_UINT8 || dtype == DLP_DTYPE_BOOL;
}

/* Rows of two numbers are points, if they are not bytes. */
bool planes_are(const struct schema_field *field) {
        if (field->kind == FIELD_MASKS)
                return true;
        if (!mask_is_name(field->name) || field->is_gathered)
                return false;
        if (field->kind == FIELD_BYTES)
                return field->is_stored && field->coding == CODING_NPY;
        return field->kind == FIELD_VALUE && field->n_dims == 3 && (is_byte(field->dtype) || field->shape[2] != 2);
}

static bool mask_planes_is_float(uint32_t dtype) {
        return dtype == DLP_DTYPE_FLOAT16 || dtype == DLP_DTYPE_BFLOAT16 || dtype == DLP_DTYPE_FLOAT32 ||
               dtype == DLP_DTYPE_FLOAT64;
}

/* Elements that are numbers of another dtype are converted to uint8; one that does not fit is a damaged sample. */
int planes_choose(struct codec *codec, struct why *why) {
        struct schema_field *field = &codec->field;

        codec->type = &CODEC_PLANES;
        if (field->kind == FIELD_MASKS)
                return 0;
        if (field->kind == FIELD_BYTES) {
                field->kind = FIELD_VALUE;
                field->dtype = DLP_DTYPE_UINT8;
                field->n_dims = 3;
                field->shape[1] = field->shape[2] = -1;
                codec->steps.has_dtype = true;
        } else if (mask_planes_is_float(field->dtype)) {
                return why_set(why, -EINVAL,
                               "pipeline: field %s is a mask by its name, and an array of %s; masks are whole numbers "
                               "or bool: rename the field (the key fields of the configuration), or name it in a part "
                               "of its own",
                               field->name, dlp_dtype_name(field->dtype));
        } else {
                codec->steps.has_dtype = field->dtype != DLP_DTYPE_UINT8;
        }
        field->shape[0] = -1;
        codec->steps.dtype = DLP_DTYPE_UINT8;
        return 0;
}

/* ---- their room ------------------------------------------------------------------------------------------------ */

static bool is_drawn(const struct codec *codec) {
        return codec->field.kind == FIELD_MASKS;
}

/* The most planes that a sample can have, told by the longest one; UINT64_MAX: unknown. */
static int most_planes(const struct codec *codec, const struct codec_terms *terms, uint64_t *ret_n, struct why *why) {
        const struct schema_field *field = &codec->field;
        bool is_text = field->is_stored && field->coding == CODING_JSON; /* an element takes a digit and a comma */
        uint64_t n_plane = is_text ? 2 : dlp_dtype_bytes(field->dtype);
        struct field_form longest = { 0 };
        int r;

        *ret_n = is_drawn(codec) ? field->max_rows : UINT64_MAX;
        if (is_drawn(codec) || field->shape[1] < 1 || field->shape[2] < 1)
                return 0;
        r = codec_form_ragged(codec, terms, 1, &longest, why);
        if (r == 0)
                *ret_n = longest.max_bytes / (uint64_t)field->shape[1] / (uint64_t)field->shape[2] / n_plane;
        return r;
}

/* Steps that a picture is too small for, and pictures of another size, are noticed late. */
static int planes_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                       struct why *why) {
        uint32_t height = 0, width = 0;
        bool varies = recipe_output(codec->recipe, &height, &width) == RECIPE_VARIES;
        uint64_t n_pixels = varies ? terms->max_pixels : (uint64_t)height * width, most = 0;
        int r = most_planes(codec, terms, &most, why);

        if (r < 0)
                return r;
        ret_form->dtype = DLP_DTYPE_UINT8;
        ret_form->how = COLLATE_RAGGED;
        ret_form->n_dims = 3;
        ret_form->shape[0] = -1;
        ret_form->shape[1] = varies ? -1 : (int64_t)height;
        ret_form->shape[2] = varies ? -1 : (int64_t)width;
        ret_form->unit_bytes = varies ? 1 : n_pixels;
        if (__builtin_mul_overflow(n_pixels, most, &ret_form->max_bytes))
                ret_form->max_bytes = UINT64_MAX;
        ret_form->fails_late = true;
        ret_form->takes_share = varies || most == UINT64_MAX;
        return 0;
}

/* ---- a sample -------------------------------------------------------------------------------------------------- */

static bool mask_planes_drops_some(const struct codec *codec, const struct codec_input *input) {
        return codec_drops_boxes(codec) && input->kept->is_known;
}

static int mask_planes_check_size(const struct codec_input *input, const int64_t *shape, struct why *why) {
        if (shape[0] == 0 || (shape[1] == input->lead_height && shape[2] == input->lead_width))
                return 0;
        return why_set(why, -EBADMSG, "has masks of %lld x %lld pixels for a picture of %u x %u", (long long)shape[2],
                       (long long)shape[1], input->lead_width, input->lead_height);
}

/* A .npy file may hold anything; where one shape is known for all samples, too, since a file may change. */
static int mask_planes_check_npy(const struct codec *codec, const struct codec_input *input, struct why *why) {
        size_t n = input->n_bytes < NPY_HEADER_MAX ? input->n_bytes : NPY_HEADER_MAX;
        struct npy_header header;

        if (codec->field.coding != CODING_NPY || npy_header_read_value(input->bytes, n, &header, why) < 0)
                return 0; /* who reads the elements refuses it */
        if (header.n_dims != 3 || mask_planes_is_float(header.dtype))
                return why_set(why, -EBADMSG,
                               "is an array of %s with %u dimensions; masks are n x height x width whole numbers or "
                               "bool, and one mask of height x width needs decode(mask=uint8) or another dtype",
                               dlp_dtype_name(header.dtype), header.n_dims);
        return 0;
}

/* All planes are in memory before they are moved. */
static int open_array(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      struct codec_opened *opened, struct why *why) {
        int r = mask_planes_check_npy(codec, input, why);

        if (r == 0)
                r = codec_value_type(codec)->open(codec, tools, input, opened, why);
        if (r == 0)
                r = mask_planes_check_size(input, opened->shape, why);
        if (r < 0)
                return r;
        tools->n_rows_bytes = opened->n_bytes;
        opened->need_bytes += opened->n_bytes;
        return 0;
}

static int load_segments(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                         uint64_t *ret_n_bytes, struct why *why) {
        uint64_t n_bytes = source_length(input->source, input->sample, codec->idx_field);
        int r;

        if (n_bytes > SEGMENTS_BYTES_MAX)
                return why_set(why, -E2BIG, "its segmentations are %llu bytes of JSON, at most %u can be drawn",
                               (unsigned long long)n_bytes, SEGMENTS_BYTES_MAX);
        r = codec_memory_reserve(&tools->elements, n_bytes, why);
        if (r < 0)
                return r;
        source_value(input->source, input->sample, codec->idx_field, tools->elements.bytes);
        *ret_n_bytes = n_bytes;
        return 0;
}

/* Those that are moved together are drawn, moved, and drawn over. */
static int open_drawn(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      struct codec_opened *opened, struct why *why) {
        uint64_t n_plane = (uint64_t)input->lead_width * input->lead_height, n_text = 0, n = 0;
        int r = load_segments(codec, tools, input, &n_text, why);

        if (r == 0)
                r = segments_count(tools->elements.bytes, n_text, &n, why);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if (n > DRAWN_PIXELS_MAX / n_plane)
                return why_set(why, -EFBIG, "has %llu masks of %u x %u pixels; at most %llu pixels are drawn",
                               (unsigned long long)n, input->lead_width, input->lead_height, DRAWN_PIXELS_MAX);
        tools->n_rows_bytes = n_plane * N_TOGETHER + input->lead_width;
        opened->shape[0] = (int64_t)n;
        opened->need_bytes = n_text + tools->n_rows_bytes;
        return 0;
}

/* The draws depend on the size, so it must be the picture's. */
static int planes_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       struct codec_opened *ret_opened, struct why *why) {
        const struct codec_kept *kept = input->kept;
        struct geometry *geometry = &tools->geometry;
        int r = codec_load_plan_boxes(codec, tools, input, geometry, why);

        if (r == 0)
                r = is_drawn(codec) ? open_drawn(codec, tools, input, ret_opened, why)
                                    : open_array(codec, tools, input, ret_opened, why);
        if (r == 0 && mask_planes_drops_some(codec, input) && ret_opened->shape[0] != kept->n_boxes)
                return why_set(why, -EBADMSG, "has %lld masks for %u boxes, and sanitize drops both together",
                               (long long)ret_opened->shape[0], kept->n_boxes);
        if (r == 0)
                r = recipe_plan_mask(codec->recipe, input->lead_width, input->lead_height, false,
                                     codec_seed(codec, input), input->epoch, input->sample, geometry, why);
        if (r < 0)
                return r;
        tools->n_planes = (uint64_t)ret_opened->shape[0];
        if (mask_planes_drops_some(codec, input))
                ret_opened->shape[0] = kept->n_kept;
        ret_opened->shape[1] = geometry->height;
        ret_opened->shape[2] = geometry->width;
        ret_opened->n_bytes = (uint64_t)ret_opened->shape[0] * geometry->height * geometry->width;
        ret_opened->need_bytes += recipe_bytes_needed(geometry) + channels_bytes(geometry);
        return 0;
}

/* ---- moving ---------------------------------------------------------------------------------------------------- */

/* Planes on their way to their places in the output. */
struct moving {
        struct codec_tools *tools;
        uint32_t stride; /* of a plane */
        uint32_t n;      /* planes that wait to be moved */
        const uint8_t *planes[N_TOGETHER];
        uint8_t *out; /* of the next plane */
};

/* Moves the planes that wait. */
static int mask_planes_move(struct moving *moving, struct why *why) {
        const struct geometry *geometry = &moving->tools->geometry;
        size_t n = (size_t)geometry->width * geometry->height;
        struct channels channels = { .step = 1, .width = moving->stride };
        const uint8_t *moved = NULL;
        int r = 0;

        for (uint32_t i = 0; i < moving->n && geometry->is_copy; i++)
                memcpy(moving->out + i * n, moving->planes[i], n);
        if (!geometry->is_copy) {
                for (uint32_t i = 0; i < N_TOGETHER; i++)
                        channels.bytes[i] = moving->planes[i < moving->n ? i : 0];
                r = channels_move(moving->tools, &channels, &moved, why);
                for (uint32_t i = 0; i < moving->n && r == 0; i++)
                        for (size_t k = 0; k < n; k++)
                                moving->out[i * n + k] = moved[k * N_TOGETHER + i];
        }
        moving->out += moving->n * n;
        moving->n = 0;
        return r;
}

/* Where the planes of an open sample come from. */
struct origin {
        const struct codec_kept *kept; /* NULL: all stay */
        uint8_t *planes;               /* an array: all of them; else room for those that are moved together */
        size_t n_plane;
        bool is_drawn;
        struct segments segments;
};

static int begin_planes(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        struct origin *origin, struct why *why) {
        uint64_t n_text;
        int r = codec_memory_reserve(&tools->rows, tools->n_rows_bytes, why);

        *origin = (struct origin){ .kept = mask_planes_drops_some(codec, input) ? input->kept : NULL,
                                   .planes = tools->rows.bytes,
                                   .n_plane = (size_t)input->lead_width * input->lead_height,
                                   .is_drawn = is_drawn(codec) };
        if (r == 0 && !origin->is_drawn)
                return codec_value_type(codec)->render(codec, tools, input, origin->planes, why);
        if (r == 0) /* again: the memory may have been given back since the field was opened */
                r = load_segments(codec, tools, input, &n_text, why);
        if (r == 0)
                segments_begin(&origin->segments, tools->elements.bytes, n_text, input->lead_width, input->lead_height,
                               origin->planes + origin->n_plane * N_TOGETHER);
        return r;
}

/* Plane i, in its turn; NULL if it leaves. */
static int next_plane(struct origin *origin, uint64_t i, uint32_t n_waiting, const uint8_t **ret_plane,
                      struct why *why) {
        uint8_t *plane = origin->planes + (origin->is_drawn ? n_waiting : i) * origin->n_plane;
        bool stays = !origin->kept || origin->kept->bits[i / 8] >> i % 8 & 1;

        *ret_plane = stays ? plane : NULL;
        if (!origin->is_drawn)
                return 0;
        return stays ? segments_draw(&origin->segments, plane, why) : segments_skip(&origin->segments, why);
}

static int planes_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                         uint8_t *out, struct why *why) {
        struct moving moving = { .tools = tools, .stride = input->lead_width, .out = out };
        struct origin origin;
        int r = begin_planes(codec, tools, input, &origin, why);

        for (uint64_t i = 0; i < tools->n_planes && r == 0; i++) {
                r = next_plane(&origin, i, moving.n, &moving.planes[moving.n], why);
                if (r == 0 && moving.planes[moving.n] && ++moving.n == N_TOGETHER)
                        r = mask_planes_move(&moving, why);
        }
        if (r == 0 && moving.n > 0)
                r = mask_planes_move(&moving, why);
        return r == -E2BIG && origin.is_drawn ? -EBADMSG : r;
}

/* ---- refusals -------------------------------------------------------------------------------------------------- */

static int planes_refuse_room(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                              struct why *why) {
        char has[AMOUNT_TEXT_MAX], room[AMOUNT_TEXT_MAX];

        (void)codec;
        format_compared(has, opened->n_bytes, room, room_bytes);
        return why_set(why, -EFBIG,
                       "has %lld masks of %lld x %lld pixels after the pipeline, which are %s; this job's "
                       "slots have room for %s: ask for a smaller batch or fewer slots, raise memory_limit, or let "
                       "the pipeline make them smaller",
                       (long long)opened->shape[0], (long long)opened->shape[2], (long long)opened->shape[1], has,
                       room);
}

static int planes_refuse_memory(const struct codec_tools *tools, const struct codec_opened *opened,
                                uint64_t allowed_bytes, struct why *why) {
        char need[AMOUNT_TEXT_MAX], allowed[AMOUNT_TEXT_MAX];

        format_compared(need, opened->need_bytes, allowed, allowed_bytes);
        return why_set(why, -EFBIG,
                       "has %llu masks: moving them may take %s, %s are allowed (a quarter of memory_limit, 1 GiB at "
                       "most): raise memory_limit",
                       (unsigned long long)tools->n_planes, need, allowed);
}

static int planes_refuse_shape(const struct codec_opened *opened, const int64_t *other, struct why *why) {
        return why_set(why, -EMEDIUMTYPE,
                       "has masks of %lld x %lld pixels after the pipeline, another sample of its batch has %lld x "
                       "%lld; use batch_size 1, or a pipeline that gives one size",
                       (long long)opened->shape[2], (long long)opened->shape[1], (long long)other[2],
                       (long long)other[1]);
}

const struct codec_type CODEC_PLANES = {
        .name = "planes",
        .interprets = INTERPRETS_ALL,
        .opening = STAGE_MASKS,
        .rendering = STAGE_MASKS,
        .form = planes_form,
        .open = planes_open,
        .render = planes_render,
        .refuse_room = planes_refuse_room,
        .refuse_memory = planes_refuse_memory,
        .refuse_shape = planes_refuse_shape,
};

#include "daemon/codec/masks/segments.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/base/json/json_value.h"
#include "daemon/codec/masks/mask_runs.h"

#define FIRST_POLYGON_MIN 6u /* numbers: COCO's tools take fewer for something else */

static int refuse_text(struct why *why) {
        return why_set(why, -EBADMSG, "is not a JSON array of segmentations");
}

int segments_count(const void *text, size_t n_bytes, uint64_t *ret_n, struct why *why) {
        struct json_scan scan;
        struct json_token token;
        uint64_t n = 0;
        int r;

        json_scan_init(&scan, text, n_bytes);
        r = json_next(&scan, &token, why);
        if (r == 0 && token.kind != JSON_ARRAY)
                return refuse_text(why);
        while (r == 0) {
                r = json_next(&scan, &token, why);
                if (r < 0 || token.kind == JSON_ARRAY_END)
                        break;
                n++;
                r = json_skip(&scan, 1, why);
        }
        if (r == 0)
                r = json_next(&scan, &token, why); /* the end of the text */
        if (r == 0)
                *ret_n = n;
        return r;
}

void segments_begin(struct segments *segments, const void *text, size_t n_bytes, uint32_t width, uint32_t height,
                    uint8_t *columns) {
        struct json_token token;

        *segments = (struct segments){ .outline = { .width = width, .height = height, .columns = columns } };
        memset(columns, 0, width);
        json_scan_init(&segments->scan, text, n_bytes);
        json_next(&segments->scan, &token, NULL); /* the bracket, which segments_count() has seen */
}

/* ---- polygons -------------------------------------------------------------------------------------------------- */

static int refuse_polygon(struct why *why) {
        return why_set(why, -EBADMSG, "a polygon is not an array [x, y, x, y, ...] of numbers");
}

static int refuse_corner(const struct why *detail, struct why *why) {
        return why_set(why, -EBADMSG, "a polygon has a corner that cannot be: %s", detail->text);
}

/* After its bracket. */
static int draw_corners(struct segments *segments, uint64_t *ret_n, struct why *why) {
        double numbers[2] = { 0 };
        struct why detail;

        for (uint64_t n = 0;; n++) {
                struct json_token token;
                int r = json_next(&segments->scan, &token, why);

                if (r < 0)
                        return r;
                if (token.kind == JSON_ARRAY_END) {
                        *ret_n = n;
                        return 0;
                }
                r = json_float_read(token.bytes, token.n_bytes, &numbers[n % 2], &detail);
                if (r < 0)
                        return r == -ERANGE ? refuse_corner(&detail, why) : refuse_polygon(why);
                if (n % 2 == 1)
                        r = outline_add(&segments->outline, numbers[0], numbers[1], why);
                if (r < 0)
                        return r;
        }
}

static int draw_polygon(struct segments *segments, uint8_t *plane, bool is_first, struct why *why) {
        uint64_t n = 0;
        int r;

        outline_begin(&segments->outline, plane);
        r = draw_corners(segments, &n, why);
        if (r == 0)
                r = outline_end(&segments->outline, why);
        if (r == 0 && n % 2 != 0)
                return why_set(why, -EBADMSG, "a polygon has %" PRIu64 " numbers, which are not pairs", n);
        if (r == 0 && (n == 0 || (is_first && n < FIRST_POLYGON_MIN)))
                return why_set(why, -EBADMSG, "a polygon has %" PRIu64 " corners, at least 3 are needed", n / 2);
        return r;
}

/* After the bracket that holds them. */
static int draw_polygons(struct segments *segments, uint8_t *plane, struct why *why) {
        for (uint64_t n = 0;; n++) {
                struct json_token token;
                int r = json_next(&segments->scan, &token, why);

                if (r < 0)
                        return r;
                if (token.kind == JSON_ARRAY_END)
                        return n > 0 ? 0 : why_set(why, -EBADMSG, "it has no polygons");
                if (token.kind != JSON_ARRAY)
                        return refuse_polygon(why);
                r = draw_polygon(segments, plane, n == 0, why);
                if (r < 0)
                        return r;
        }
}

/* ---- run lengths ----------------------------------------------------------------------------------------------- */

static int segments_read_integer(const struct json_token *token, int64_t *ret_number, struct why *why) {
        struct why detail;

        if (json_integer_read(token->bytes, token->n_bytes, ret_number, &detail) == 0)
                return 0;
        return why_set(why, -EBADMSG, "size and counts of run lengths are whole numbers: %s", detail.text);
}

static int draw_counts(struct segments *segments, struct runs *runs, struct why *why) {
        struct json_token token;
        int r = json_next(&segments->scan, &token, why);

        if (r < 0)
                return r;
        if (token.kind == JSON_STRING)
                return runs_add_text(runs, token.bytes, token.n_bytes, why);
        if (token.kind != JSON_ARRAY)
                return why_set(why, -EBADMSG, "counts of run lengths are an array or a text");
        for (;;) {
                int64_t n;

                r = json_next(&segments->scan, &token, why);
                if (r < 0 || token.kind == JSON_ARRAY_END)
                        return r;
                r = segments_read_integer(&token, &n, why);
                if (r == 0)
                        r = runs_add(runs, n, why);
                if (r < 0)
                        return r;
        }
}

static int segments_check_size(struct segments *segments, struct why *why) {
        const struct outline *outline = &segments->outline;
        int64_t size[2] = { 0 };
        struct json_token token;
        int r = json_next(&segments->scan, &token, why);

        if (r == 0 && token.kind != JSON_ARRAY)
                return why_set(why, -EBADMSG, "size of run lengths is [height, width]");
        for (uint32_t i = 0; i < 2 && r == 0; i++) {
                r = json_next(&segments->scan, &token, why);
                if (r == 0)
                        r = segments_read_integer(&token, &size[i], why);
        }
        if (r == 0)
                r = json_next(&segments->scan, &token, why);
        if (r == 0 && (token.kind != JSON_ARRAY_END || size[0] != outline->height || size[1] != outline->width))
                return why_set(why, -EBADMSG,
                               "its run lengths have the size [%" PRId64 ", %" PRId64 "], and the picture is %u high "
                               "and %u wide",
                               size[0], size[1], outline->height, outline->width);
        return r;
}

/* After its brace. */
static int draw_runs(struct segments *segments, uint8_t *plane, struct why *why) {
        bool has_counts = false, has_size = false;
        struct runs runs;
        int r = 0;

        runs_begin(&runs, plane, segments->outline.width, segments->outline.height);
        while (r == 0) {
                struct json_token key;
                uint32_t depth = segments->scan.depth;

                r = json_next(&segments->scan, &key, why);
                if (r < 0 || key.kind == JSON_OBJECT_END)
                        break;
                if (json_string_is(&key, "counts", 6)) {
                        r = has_counts ? why_set(why, -EBADMSG, "its counts come twice")
                                       : draw_counts(segments, &runs, why);
                        has_counts = true;
                } else if (json_string_is(&key, "size", 4)) {
                        has_size = true;
                        r = segments_check_size(segments, why);
                } else {
                        r = json_next(&segments->scan, &key, why);
                        if (r == 0)
                                r = json_skip(&segments->scan, depth, why);
                }
        }
        if (r == 0 && !(has_counts && has_size))
                return why_set(why, -EBADMSG, "run lengths need size and counts");
        return r < 0 ? r : runs_end(&runs, why);
}

/* ---- one by one ------------------------------------------------------------------------------------------------ */

static int segments_draw_all(struct segments *segments, uint8_t *plane, struct why *why) {
        struct json_token token;
        int r = json_next(&segments->scan, &token, why);

        if (r < 0)
                return r;
        if (token.kind == JSON_ARRAY)
                return draw_polygons(segments, plane, why);
        if (token.kind == JSON_OBJECT)
                return draw_runs(segments, plane, why);
        return why_set(why, -EBADMSG, "%s",
                       token.kind == JSON_NULL ? "the annotation has no segmentation"
                                               : "a segmentation is an array of polygons or an object of run lengths");
}

int segments_draw(struct segments *segments, uint8_t *plane, struct why *why) {
        struct why detail = { 0 };
        int r;

        memset(plane, 0, (size_t)segments->outline.width * segments->outline.height);
        r = segments_draw_all(segments, plane, &detail);
        if (r < 0)
                return why_set(why, r, "mask %" PRIu64 ": %s", segments->number, detail.text);
        segments->number++;
        return 0;
}

int segments_skip(struct segments *segments, struct why *why) {
        struct json_token token;
        int r = json_next(&segments->scan, &token, why);

        if (r == 0)
                r = json_skip(&segments->scan, 1, why);
        segments->number++;
        return r;
}

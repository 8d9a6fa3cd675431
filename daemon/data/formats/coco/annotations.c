#include "daemon/data/formats/coco/annotations.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json/json_value.h"
#include "daemon/data/formats/listing/text_window.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/index/indexing_sort.h"
#include "proto/base/cleanup.h"

#define LOOK_UP_ELEMENTS 4096u
#define NAME_MAX_BYTES   1023u /* of a category: thousands of such names fit into a message */

struct coco_reader {
        struct text_window window;
        struct json_scan scan;
        uint64_t base; /* of the scan's offsets in the file */
        coco_progress progress;
        void *userdata;
        struct coco_annotations *into;
        struct refusals *refusals;
        struct growing text; /* a name without its quotes, until the next one is read */
        uint64_t n_elements; /* images and annotations so far */
        bool has_images, has_annotations, has_categories;
        struct why *why;
};

void coco_annotations_fini(struct coco_annotations *annotations) {
        growing_fini(&annotations->images);
        growing_fini(&annotations->annotations);
        growing_fini(&annotations->categories);
        growing_fini(&annotations->names);
        file_paths_fini(&annotations->paths);
}

size_t coco_n_images(const struct coco_annotations *annotations) {
        return annotations->images.n_bytes / sizeof(struct coco_image);
}

size_t coco_n_annotations(const struct coco_annotations *annotations) {
        return annotations->annotations.n_bytes / sizeof(struct coco_annotation);
}

const struct coco_image *coco_image(const struct coco_annotations *annotations, size_t idx) {
        return &((const struct coco_image *)(const void *)annotations->images.bytes)[idx];
}

const struct coco_annotation *coco_annotation(const struct coco_annotations *annotations, size_t idx) {
        return &((const struct coco_annotation *)(const void *)annotations->annotations.bytes)[idx];
}

/* ---- tokens of a stream ---------------------------------------------------------------------------------------- */

static int annotations_feed(struct coco_reader *reader) {
        int r;

        reader->window.at = (size_t)(reader->scan.bytes - reader->window.bytes) + reader->scan.at;
        r = text_window_read_on(&reader->window, reader->why);
        if (r < 0)
                return r;
        json_scan_feed(&reader->scan, reader->window.bytes, reader->window.n_bytes, reader->window.is_last);
        return 0;
}

/* The token is valid until the next call. */
static int annotations_next(struct coco_reader *reader, struct json_token *token) {
        int r;

        while ((r = json_next(&reader->scan, token, reader->why)) == JSON_MORE)
                if ((r = annotations_feed(reader)) < 0)
                        return r;
        return r;
}

static int annotations_skip_to(struct coco_reader *reader, uint32_t depth) {
        int r;

        while ((r = json_skip(&reader->scan, depth, reader->why)) == JSON_MORE)
                if ((r = annotations_feed(reader)) < 0)
                        return r;
        return r;
}

/* The next value, whatever it is. */
static int skip_value(struct coco_reader *reader) {
        uint32_t depth = reader->scan.depth;
        struct json_token token;
        int r = annotations_next(reader, &token);

        return r < 0 ? r : annotations_skip_to(reader, depth);
}

static uint64_t offset_of(const struct coco_reader *reader) {
        return reader->base + json_scan_offset(&reader->scan);
}

static bool annotations_is_key(const struct json_token *key, const char *name) {
        return json_string_is(key, name, strlen(name));
}

/* ---- elements -------------------------------------------------------------------------------------------------- */

/* An element of `images` or `annotations` while it is read. */
struct coco_element {
        struct coco_reader *reader;
        const char *array; /* in which it is */
        uint64_t number;   /* its place there */
        unsigned has;      /* members that were found: HAS_... */
        bool is_refused;   /* the value that was read last is a whole one, but not one that a column can have */
        struct coco_image image;
        struct coco_annotation annotation;
        struct coco_category category;
};

enum {
        HAS_ID = 1,
        HAS_FILE_NAME = 2,
        HAS_IMAGE_ID = 4,
        HAS_CATEGORY_ID = 8,
        HAS_BOX = 16,
        HAS_AREA = 32,
        HAS_SIZE = 64, /* of a box, whose area is that of the annotation if it has none */
};

static int annotations_refuse(struct coco_element *element, int error, const char *member, const struct why *detail) {
        element->is_refused = true;
        return why_set(element->reader->why, error, "%s[%" PRIu64 "]: \"%s\": %s", element->array, element->number,
                       member, detail->text);
}

static int annotations_read_integer(struct coco_element *element, const char *member, int64_t *ret_number) {
        struct json_token token;
        struct why detail;
        int r = annotations_next(element->reader, &token);

        if (r < 0)
                return r;
        if (token.kind == JSON_TRUE || token.kind == JSON_FALSE) { /* is_crowd is written so by some programs */
                *ret_number = token.kind == JSON_TRUE;
                return 0;
        }
        r = json_integer_read(token.bytes, token.n_bytes, ret_number, &detail);
        return r < 0 ? annotations_refuse(element, r == -EBADMSG ? -EINVAL : r, member, &detail) : 0;
}

static int annotations_refuse_number(struct coco_element *element, const char *member, const struct why *detail) {
        element->is_refused = true;
        return why_set(element->reader->why, -EINVAL,
                       "%s[%" PRIu64 "]: \"%s\": %s; correct it, or leave this one of %s out", element->array,
                       element->number, member, detail->text, element->array);
}

static int read_float(struct coco_element *element, const char *member, double *ret_number) {
        struct json_token token;
        struct why detail;
        int r = annotations_next(element->reader, &token);

        if (r < 0)
                return r;
        if (json_float_read(token.bytes, token.n_bytes, ret_number, &detail) < 0)
                return annotations_refuse_number(element, member, &detail);
        return 0;
}

static int read_file_name(struct coco_element *element) {
        struct growing *text = &element->reader->text;
        struct json_token token;
        struct why detail;
        size_t n = 0;
        int r = annotations_next(element->reader, &token);

        if (r < 0)
                return r;
        if (growing_reserve(text, token.n_bytes) < 0)
                return why_set(element->reader->why, -ENOMEM, "no memory for the name of an image");
        r = json_string_read(token.bytes, token.n_bytes, text->bytes, &n, &detail);
        if (r == 0)
                r = file_paths_add(&element->reader->into->paths, "", (const char *)text->bytes, n,
                                   &element->image.path, &detail);
        return r < 0 ? annotations_refuse(element, r == -EBADMSG ? -EINVAL : r, "file_name", &detail) : 0;
}

static int refuse_box(struct coco_element *element) {
        return annotations_refuse(element, -EINVAL, "bbox",
                                  &(struct why){ "[x, y, width, height], four numbers, was expected" });
}

/* What torch would train on as infinite is refused, as is what is written so. */
static int refuse_beyond_float32(struct coco_element *element, const char *member) {
        return annotations_refuse_number(element, member, &(struct why){ "exceeds float32" });
}

static int read_box_number(struct coco_element *element, float *ret_number) {
        struct json_token token;
        struct why detail;
        double number = 0;
        int r = annotations_next(element->reader, &token);

        if (r < 0)
                return r;
        r = json_float_read(token.bytes, token.n_bytes, &number, &detail);
        if (r < 0)
                return r == -ERANGE ? annotations_refuse_number(element, "bbox", &detail) : refuse_box(element);
        *ret_number = (float)number;
        return 0;
}

/* x, y, width, height -> corners, in float32 as torchvision's convert_bounding_box_format() does. */
static int read_box(struct coco_element *element) {
        float *box = element->annotation.box;
        struct json_token token;
        int r = annotations_next(element->reader, &token);

        if (r == 0 && token.kind != JSON_ARRAY)
                return refuse_box(element);
        for (uint32_t n = 0; n < 4 && r == 0; n++)
                r = read_box_number(element, &box[n]);
        if (r == 0)
                r = annotations_next(element->reader, &token);
        if (r < 0)
                return r;
        if (token.kind != JSON_ARRAY_END)
                return refuse_box(element);
        if (!(element->has & HAS_AREA))
                element->annotation.area = box[2] * box[3];
        element->has |= HAS_SIZE;
        box[2] += box[0];
        box[3] += box[1];
        if (!isfinite(box[0]) || !isfinite(box[1]) || !isfinite(box[2]) || !isfinite(box[3]))
                return refuse_beyond_float32(element, "bbox");
        return 0;
}

/* Only where it lies. */
static int read_segmentation(struct coco_element *element) {
        uint32_t depth = element->reader->scan.depth;
        struct json_token token;
        uint64_t n;
        int r = annotations_next(element->reader, &token);

        if (r < 0)
                return r;
        element->annotation.segmentation = offset_of(element->reader) - token.n_bytes;
        r = annotations_skip_to(element->reader, depth);
        if (r < 0)
                return r;
        n = offset_of(element->reader) - element->annotation.segmentation;
        if (n > TEXT_WINDOW_RECORD_MAX)
                return annotations_refuse(element, -E2BIG, "segmentation", &(struct why){ "has more than 256 MiB" });
        element->annotation.n_segmentation = (uint32_t)n;
        return 0;
}

static int read_area(struct coco_element *element) {
        double area = 0;
        int r = read_float(element, "area", &area);

        element->annotation.area = (float)area;
        element->has |= HAS_AREA;
        return r;
}

static int read_image_member(struct coco_element *element, const struct json_token *key) {
        if (annotations_is_key(key, "id")) {
                element->has |= HAS_ID;
                return annotations_read_integer(element, "id", &element->image.id);
        }
        if (annotations_is_key(key, "file_name")) {
                element->has |= HAS_FILE_NAME;
                return read_file_name(element);
        }
        return skip_value(element->reader);
}

static int read_image_id(struct coco_element *element) {
        return annotations_read_integer(element, "image_id", &element->annotation.image_id);
}

static int read_category_id(struct coco_element *element) {
        return annotations_read_integer(element, "category_id", &element->annotation.category_id);
}

static int read_is_crowd(struct coco_element *element) {
        return annotations_read_integer(element, "iscrowd", &element->annotation.is_crowd);
}

static int read_id_of_category(struct coco_element *element) {
        return annotations_read_integer(element, "id", &element->category.id);
}

/* A member that columns are made of: who asks for others does not need it. */
struct coco_member {
        const char *name;
        int (*read)(struct coco_element *element);
        unsigned has;           /* HAS_...; 0: it need not be there */
        const char *columns[2]; /* none: all of them */
};

#define MEMBERS_MAX 6u

static const struct coco_member OF_ANNOTATIONS[MEMBERS_MAX + 1] = {
        { "image_id", read_image_id, HAS_IMAGE_ID, { NULL } },
        { "category_id", read_category_id, HAS_CATEGORY_ID, { "labels", "category_ids" } },
        { "bbox", read_box, HAS_BOX, { "boxes" } },
        { "area", read_area, 0, { "area" } },
        { "iscrowd", read_is_crowd, 0, { "iscrowd" } },
        { "segmentation", read_segmentation, 0, { "segmentation", "masks" } },
};

static const struct coco_member OF_CATEGORIES[MEMBERS_MAX + 1] = {
        { "id", read_id_of_category, HAS_ID, { "labels" } },
};

/* `why` says what is wrong: the columns of this member are left out, and the others go on. */
static int annotations_leave_out(const struct coco_reader *reader, const struct coco_member *member, int error) {
        int r = member->columns[0] ? 0 : error;

        for (size_t i = 0; i < ARRAY_SIZE(member->columns) && member->columns[i] && r == 0; i++)
                r = refusals_add(reader->refusals, member->columns[i], error, reader->why);
        return r;
}

static int read_member(struct coco_element *element, const struct json_token *key, const struct coco_member *members) {
        uint32_t depth = element->reader->scan.depth;
        int r;

        while (members->name && !annotations_is_key(key, members->name))
                members++;
        if (!members->name)
                return skip_value(element->reader);
        element->has |= members->has;
        element->is_refused = false;
        r = members->read(element);
        if (r < 0 && element->is_refused)
                r = annotations_leave_out(element->reader, members, r);
        return r < 0 ? r : annotations_skip_to(element->reader, depth);
}

static int read_annotation_member(struct coco_element *element, const struct json_token *key) {
        return read_member(element, key, OF_ANNOTATIONS);
}

/* Members that every element needs. */
static int check_members(const struct coco_element *element, const struct coco_member *members) {
        int r = 0;

        for (; members->name && r == 0; members++)
                if ((element->has & members->has) != members->has)
                        r = annotations_leave_out(element->reader, members,
                                                  why_set(element->reader->why, -EINVAL,
                                                          "%s[%" PRIu64 "]: has no \"%s\"", element->array,
                                                          element->number, members->name));
        return r;
}

/* The area is that of the box, if it is not said. */
static int check_area(struct coco_element *element) {
        static const struct coco_member AREA = { "area", NULL, 0, { "area" } };

        if (!(element->has & (HAS_AREA | HAS_SIZE)))
                return annotations_leave_out(element->reader, &AREA,
                                             why_set(element->reader->why, -EINVAL,
                                                     "%s[%" PRIu64 "]: has no \"area\", and \"bbox\" does not say it",
                                                     element->array, element->number));
        return isfinite(element->annotation.area)
                       ? 0
                       : annotations_leave_out(element->reader, &AREA, refuse_beyond_float32(element, "area"));
}

static int keep_name(struct coco_element *element, const uint8_t *text, size_t n) {
        struct growing *names = &element->reader->into->names;
        uint64_t name = names->n_bytes;
        int r;

        if (n == 0 || n > NAME_MAX_BYTES || memchr(text, '\0', n))
                return 0;
        r = growing_append(names, text, n);
        if (r == 0)
                r = growing_append(names, "", 1);
        if (r < 0)
                return why_set(element->reader->why, r, "no memory for the names of categories");
        element->category.name = name;
        return 0;
}

/* What cannot be the name of a class is none: it takes no data from anybody. */
static int annotations_read_name(struct coco_element *element) {
        struct growing *text = &element->reader->text;
        uint32_t depth = element->reader->scan.depth;
        struct json_token token;
        struct why detail;
        size_t n = 0;
        int r = annotations_next(element->reader, &token);

        if (r < 0)
                return r;
        if (token.kind != JSON_STRING)
                return annotations_skip_to(element->reader, depth);
        if (growing_reserve(text, token.n_bytes) < 0)
                return why_set(element->reader->why, -ENOMEM, "no memory for the name of a category");
        r = json_string_read(token.bytes, token.n_bytes, text->bytes, &n, &detail);
        return r < 0 ? 0 : keep_name(element, text->bytes, n);
}

static int read_category_member(struct coco_element *element, const struct json_token *key) {
        return annotations_is_key(key, "name") ? annotations_read_name(element)
                                               : read_member(element, key, OF_CATEGORIES);
}

/* ---- the three arrays ------------------------------------------------------------------------------------------ */

struct coco_array {
        const char *name;
        int (*read_member)(struct coco_element *element, const struct json_token *key);
        const struct coco_member *members; /* NULL: those of an image, which it cannot be without */
};

static const struct coco_array IMAGES = { "images", read_image_member, NULL };
static const struct coco_array ANNOTATIONS = { "annotations", read_annotation_member, OF_ANNOTATIONS };
static const struct coco_array CATEGORIES = { "categories", read_category_member, OF_CATEGORIES };

static int annotations_keep(struct coco_element *element, const struct coco_array *array) {
        struct coco_annotations *into = element->reader->into;
        int r;

        if (array == &IMAGES)
                r = growing_append(&into->images, &element->image, sizeof(element->image));
        else if (array == &ANNOTATIONS)
                r = growing_append(&into->annotations, &element->annotation, sizeof(element->annotation));
        else
                r = growing_append(&into->categories, &element->category, sizeof(element->category));
        if (r < 0)
                return why_set(element->reader->why, r, "no memory after %" PRIu64 " elements of %s", element->number,
                               array->name);
        if (++element->reader->n_elements % LOOK_UP_ELEMENTS == 0 && element->reader->progress)
                return element->reader->progress(element->reader->n_elements, element->reader->userdata);
        return 0;
}

#define NEEDED_OF_IMAGES (HAS_ID | HAS_FILE_NAME)

static int annotations_read_element(struct coco_reader *reader, const struct coco_array *array, uint64_t number) {
        struct coco_element element = { .reader = reader,
                                        .array = array->name,
                                        .number = number,
                                        .category = { .number = number, .name = COCO_NO_NAME } };
        int r;

        for (;;) {
                struct json_token key;

                r = annotations_next(reader, &key);
                if (r < 0)
                        return r;
                if (key.kind == JSON_OBJECT_END)
                        break;
                r = array->read_member(&element, &key);
                if (r < 0)
                        return r;
        }
        if (array == &IMAGES && (element.has & NEEDED_OF_IMAGES) != NEEDED_OF_IMAGES)
                return why_set(reader->why, -EINVAL, "%s[%" PRIu64 "] needs id and file_name", array->name, number);
        r = array->members ? check_members(&element, array->members) : 0;
        if (r == 0 && array == &ANNOTATIONS)
                r = check_area(&element);
        return r < 0 ? r : annotations_keep(&element, array);
}

static int annotations_read_array(struct coco_reader *reader, const struct coco_array *array, bool *has) {
        struct json_token token;
        int r = annotations_next(reader, &token);

        if (r == 0 && (token.kind != JSON_ARRAY || *has))
                return why_set(reader->why, -EINVAL, "\"%s\" %s", array->name,
                               *has ? "comes twice" : "is not an array [...]");
        *has = true;
        for (uint64_t number = 0; r == 0; number++) {
                r = annotations_next(reader, &token);
                if (r < 0 || token.kind == JSON_ARRAY_END)
                        break;
                if (token.kind != JSON_OBJECT)
                        return why_set(reader->why, -EINVAL, "%s[%" PRIu64 "] is not an object {...}", array->name,
                                       number);
                r = annotations_read_element(reader, array, number);
        }
        return r;
}

static int read_members(struct coco_reader *reader) {
        struct json_token token;
        int r = annotations_next(reader, &token);

        if (r == 0 && token.kind != JSON_OBJECT)
                return why_set(reader->why, -EINVAL, "is not a file of COCO annotations, which begins with {");
        while (r == 0) {
                r = annotations_next(reader, &token);
                if (r < 0 || token.kind == JSON_OBJECT_END)
                        break;
                if (annotations_is_key(&token, IMAGES.name))
                        r = annotations_read_array(reader, &IMAGES, &reader->has_images);
                else if (annotations_is_key(&token, ANNOTATIONS.name))
                        r = annotations_read_array(reader, &ANNOTATIONS, &reader->has_annotations);
                else if (annotations_is_key(&token, CATEGORIES.name))
                        r = annotations_read_array(reader, &CATEGORIES, &reader->has_categories);
                else
                        r = skip_value(reader);
        }
        return r < 0 ? r : annotations_next(reader, &token); /* the end of the text */
}

/* ---- afterwards ------------------------------------------------------------------------------------------------ */

static int by_id(const void *one, const void *other, void *unused) {
        int64_t a = ((const struct coco_image *)one)->id, b = ((const struct coco_image *)other)->id;

        (void)unused;
        return (a > b) - (a < b);
}

static int by_category(const void *one, const void *other, void *unused) {
        const struct coco_category *a = one, *b = other;

        (void)unused;
        return a->id != b->id ? (a->id > b->id) - (a->id < b->id) : (a->number > b->number) - (a->number < b->number);
}

static int by_image_id(const void *id, const void *image) {
        int64_t a = *(const int64_t *)id, b = ((const struct coco_image *)image)->id;

        return (a > b) - (a < b);
}

static int by_category_id(const void *id, const void *category) {
        int64_t a = *(const int64_t *)id, b = ((const struct coco_category *)category)->id;

        return (a > b) - (a < b);
}

static int sort_images(struct coco_annotations *into, struct why *why) {
        size_t n = coco_n_images(into);
        int r = n > 0 ? indexing_sort(into->images.bytes, n, sizeof(struct coco_image), by_id, NULL) : 0;

        if (r < 0)
                return why_set(why, r, "no memory for the images");
        for (size_t i = 1; i < n; i++)
                if (coco_image(into, i - 1)->id == coco_image(into, i)->id)
                        return why_set(why, -EINVAL, "two images have the id %" PRId64, coco_image(into, i)->id);
        return 0;
}

static int add_those_that_occur(struct coco_annotations *into, struct why *why) {
        for (size_t i = 0; i < coco_n_annotations(into); i++) {
                struct coco_category category = { .id = coco_annotation(into, i)->category_id, .name = COCO_NO_NAME };

                if (i % LOOK_UP_ELEMENTS == 0 && indexing_is_over())
                        return -ECANCELED;
                if (growing_append(&into->categories, &category, sizeof(category)) < 0)
                        return why_set(why, -ENOMEM, "no memory for the categories");
        }
        return 0;
}

static size_t n_categories(const struct coco_annotations *annotations) {
        return annotations->categories.n_bytes / sizeof(struct coco_category);
}

static const struct coco_category *category_at(const struct coco_annotations *annotations, size_t idx) {
        return &((const struct coco_category *)(const void *)annotations->categories.bytes)[idx];
}

/* Sorted and each once; without any, those that occur. */
static int sort_categories(struct coco_annotations *into, struct why *why) {
        struct coco_category *categories;
        size_t n, n_kept = 0;
        int r = into->categories.n_bytes == 0 ? add_those_that_occur(into, why) : 0;

        if (r < 0)
                return r;
        categories = (void *)into->categories.bytes;
        n = n_categories(into);
        r = n > 0 ? indexing_sort(categories, n, sizeof(*categories), by_category, NULL) : 0;
        if (r < 0)
                return why_set(why, r, "no memory for the categories");
        for (size_t i = 0; i < n; i++)
                if (i + 1 == n || categories[i].id != categories[i + 1].id)
                        categories[n_kept++] = categories[i];
        into->categories.n_bytes = n_kept * sizeof(*categories);
        return 0;
}

size_t coco_n_names(const struct coco_annotations *annotations) {
        size_t n = n_categories(annotations);

        for (size_t i = 0; i < n; i++)
                if (category_at(annotations, i)->name == COCO_NO_NAME)
                        return 0;
        return n;
}

const char *coco_name(const struct coco_annotations *annotations, size_t label) {
        return (const char *)annotations->names.bytes + category_at(annotations, label)->name;
}

int64_t coco_find_image(const struct coco_annotations *annotations, int64_t id) {
        size_t n = coco_n_images(annotations);
        const struct coco_image *found = n > 0 ? bsearch(&id, annotations->images.bytes, n, sizeof(*found), by_image_id)
                                               : NULL;

        return found ? found - coco_image(annotations, 0) : -1;
}

int64_t coco_find_category(const struct coco_annotations *annotations, int64_t id) {
        size_t n = n_categories(annotations);
        const struct coco_category *found =
                n > 0 ? bsearch(&id, annotations->categories.bytes, n, sizeof(*found), by_category_id) : NULL;

        return found ? found - category_at(annotations, 0) : -1;
}

static int check_categories(const struct coco_reader *reader) {
        static const struct coco_member LABEL = { "category_id", NULL, 0, { "labels" } };
        const struct coco_annotations *into = reader->into;

        for (size_t i = 0; i < coco_n_annotations(into); i++) {
                int64_t id = coco_annotation(into, i)->category_id;

                if (i % LOOK_UP_ELEMENTS == 0 && indexing_is_over())
                        return -ECANCELED;
                if (coco_find_category(into, id) < 0)
                        return annotations_leave_out(reader, &LABEL,
                                                     why_set(reader->why, -EINVAL,
                                                             "annotations[%zu]: the category %" PRId64
                                                             " is not among \"categories\"",
                                                             i, id));
        }
        return 0;
}

int coco_read(int fd, uint64_t n_file, coco_progress progress, void *userdata, struct coco_annotations *annotations,
              struct refusals *refusals, struct why *why) {
        struct coco_reader reader = { .window = { .fd = fd, .n_file = n_file },
                                      .progress = progress,
                                      .userdata = userdata,
                                      .into = annotations,
                                      .refusals = refusals,
                                      .why = why };
        int r = text_window_begin(&reader.window, why);

        if (r == 0) {
                reader.base = reader.window.at;
                json_scan_feed(&reader.scan, reader.window.bytes + reader.base, reader.window.n_bytes - reader.base,
                               reader.window.is_last);
                r = read_members(&reader);
        }
        text_window_fini(&reader.window);
        growing_fini(&reader.text);
        if (r == 0 && !reader.has_images) /* COCO's own test sets have images alone */
                return why_set(why, -EINVAL, "is not a file of COCO annotations: it has no \"images\"");
        if (r == 0)
                r = sort_images(annotations, why);
        if (r == 0)
                r = sort_categories(annotations, why);
        if (r < 0 || refusals_have(refusals, "labels"))
                return r;
        return check_categories(&reader);
}

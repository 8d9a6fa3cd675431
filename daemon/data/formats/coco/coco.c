#include "daemon/base/machine/beneath.h"
#include "daemon/data/format.h"

/* coco: a folder of pictures, and a file of annotations that says what is on them.
 *
 * Samples are the images of that file in the order of their ids, as torchvision's CocoDetection has them; the
 * annotations of an image stay in the order of the file. Everything but the picture is in the index. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/data/formats/coco/annotations.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define LOOK_ANNOTATIONS 4096u /* between two looks at whether the index is still wanted */

struct coco {
        int root_fd;
        const struct files *files;
        const char *path; /* of the annotations */
        const struct index_watch *watch;
        struct refusals *refusals; /* of format_refusals() */
        struct why *why;
        int fd; /* of the annotations */
        int64_t settled_ns;
        struct stat folder, file;
        struct coco_annotations annotations;
        uint64_t *first; /* by image: where its annotations begin in `order`; one more than there are images */
        uint64_t *order; /* numbers of annotations, image after image */
        struct growing firsts, orders; /* their memory */
        struct growing text;           /* of one image's segmentations */
};

static void coco_fini(struct coco *coco) {
        closep(&coco->fd);
        coco_annotations_fini(&coco->annotations);
        growing_fini(&coco->firsts);
        growing_fini(&coco->orders);
        growing_fini(&coco->text);
}

static int coco_look_up(uint64_t n, void *userdata) {
        const struct coco *coco = userdata;

        return format_look_up(coco->watch, n, coco->path, coco->why);
}

/* ---- the annotations ------------------------------------------------------------------------------------------- */

/* The columns that cannot be served, each with the name of the file. */
static int take_refusals(const struct coco *coco, const struct refusals *found) {
        struct refusal one = { 0 };
        int r = 0;

        while (r == 0 && refusals_next(found, &one)) {
                r = why_set(coco->why, -EINVAL, "annotations: %s: %s", coco->path, one.reason);
                r = refusals_add(coco->refusals, one.name, r, coco->why);
        }
        return r;
}

static int read_annotations(struct coco *coco) {
        _cleanup_(refusals_fini) struct refusals found = { 0 };
        struct why detail;
        int r;

        /* O_NONBLOCK: opening a FIFO must not block. A path that is not absolute is one from the folder. */
        coco->fd = beneath_open_named(coco->root_fd, coco->files->root, coco->path,
                                      O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (coco->fd < 0)
                return why_errno(coco->why, -errno, "annotations: %s", coco->path);
        r = index_settle(coco->fd, &coco->settled_ns, &coco->file);
        if (r < 0)
                return why_errno(coco->why, r, "annotations: %s cannot be looked at", coco->path);
        if (!S_ISREG(coco->file.st_mode))
                return why_set(coco->why, -EINVAL, "annotations: %s is not a regular file", coco->path);
        r = coco_read(coco->fd, (uint64_t)coco->file.st_size, coco_look_up, coco, &coco->annotations, &found, &detail);
        if (r == -ECANCELED)
                return r;
        if (r < 0)
                return why_set(coco->why, r, "annotations: %s: %s", coco->path, detail.text);
        if (coco_n_images(&coco->annotations) == 0)
                return why_set(coco->why, -ENOENT, "annotations: %s names no image", coco->path);
        return take_refusals(coco, &found);
}

/* To which image annotation i belongs; -1: none that is there. Or -ECANCELED, now and then. */
static int image_of(const struct coco *coco, size_t i, int64_t *ret_image) {
        if (i % LOOK_ANNOTATIONS == 0 && indexing_is_over())
                return -ECANCELED;
        *ret_image = coco_find_image(&coco->annotations, coco_annotation(&coco->annotations, i)->image_id);
        return 0;
}

/* Puts the annotations of each image together. An annotation of an image that is not there belongs to no sample, as in
 * pycocotools. */
static int coco_group(struct coco *coco) {
        const struct coco_annotations *annotations = &coco->annotations;
        size_t n_images = coco_n_images(annotations), n = coco_n_annotations(annotations);

        int64_t image = -1;
        int r = 0;

        if (growing_append(&coco->firsts, NULL, (n_images + 2) * sizeof(*coco->first)) < 0 ||
            growing_append(&coco->orders, NULL, (n + 1) * sizeof(*coco->order)) < 0)
                return -ENOMEM;
        coco->first = (void *)coco->firsts.bytes;
        coco->order = (void *)coco->orders.bytes;
        for (size_t i = 0; i < n && r == 0; i++) {
                r = image_of(coco, i, &image);
                if (image >= 0)
                        coco->first[image + 2]++;
        }
        for (size_t i = 2; i < n_images + 2; i++)
                coco->first[i] += coco->first[i - 1];
        /* first[image + 1] counts up from where the image begins to where it ends, which is where the next one begins.
         */
        for (size_t i = 0; i < n && r == 0; i++) {
                r = image_of(coco, i, &image);
                if (image >= 0)
                        coco->order[coco->first[image + 1]++] = i;
        }
        return r;
}

/* ---- the index ------------------------------------------------------------------------------------------------- */

enum {
        BOXES,
        LABELS,
        CATEGORY_IDS,
        AREA,
        ISCROWD,
        IMAGE_ID,
        SEGMENTATION,
        N_COLUMNS,
};

static const struct schema_field COLUMNS[N_COLUMNS] = {
        [BOXES] = { .name = "boxes", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_FLOAT32, .n_dims = 2, .shape = { -1, 4 } },
        [LABELS] = { .name = "labels", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64, .n_dims = 1, .shape = { -1 } },
        [CATEGORY_IDS] = { .name = "category_ids",
                           .kind = FIELD_VALUE,
                           .dtype = DLP_DTYPE_INT64,
                           .n_dims = 1,
                           .shape = { -1 } },
        [AREA] = { .name = "area", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_FLOAT32, .n_dims = 1, .shape = { -1 } },
        [ISCROWD] = { .name = "iscrowd", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64, .n_dims = 1, .shape = { -1 } },
        [IMAGE_ID] = { .name = "image_id", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 },
        [SEGMENTATION] = { .name = "segmentation", .kind = FIELD_BYTES },
};

#define LEFT_OUT UINT32_MAX

/* The value of one column for one annotation. */
static size_t coco_value_of(const struct coco *coco, uint32_t column, const struct coco_annotation *annotation,
                            uint8_t value[16]) {
        int64_t number;

        switch (column) {
        case BOXES:
                memcpy(value, annotation->box, sizeof(annotation->box));
                return sizeof(annotation->box);
        case AREA:
                memcpy(value, &annotation->area, sizeof(annotation->area));
                return sizeof(annotation->area);
        case LABELS:
                number = coco_find_category(&coco->annotations, annotation->category_id);
                break;
        case CATEGORY_IDS:
                number = annotation->category_id;
                break;
        default:
                number = annotation->is_crowd;
        }
        memcpy(value, &number, sizeof(number));
        return sizeof(number);
}

/* "[A, B]" of the segmentations as they are in the file; null where an annotation has none. */
static int add_segmentation(struct coco *coco, const struct coco_annotation *annotation) {
        size_t at = coco->text.n_bytes;
        int r;

        if (annotation->n_segmentation == 0)
                return growing_append(&coco->text, "null", 4);
        r = growing_append(&coco->text, NULL, annotation->n_segmentation);
        if (r < 0)
                return r;
        r = indexing_read_at(coco->fd, coco->text.bytes + at, annotation->n_segmentation, annotation->segmentation);
        return r < 0 && r != -ECANCELED ? -EIO : r;
}

static int give_segmentations(struct coco *coco, size_t image, struct index_builder *builder, uint32_t idx) {
        int r;

        growing_clear(&coco->text);
        r = growing_append(&coco->text, "[", 1);
        for (uint64_t i = coco->first[image]; i < coco->first[image + 1] && r == 0; i++) {
                if (i > coco->first[image])
                        r = growing_append(&coco->text, ", ", 2);
                if (r == 0)
                        r = add_segmentation(coco, coco_annotation(&coco->annotations, coco->order[i]));
        }
        if (r == 0)
                r = growing_append(&coco->text, "]", 1);
        return r < 0 ? r : index_builder_set_value(builder, idx, coco->text.bytes, coco->text.n_bytes);
}

static int give_column(struct coco *coco, size_t image, uint32_t column, struct index_builder *builder, uint32_t idx) {
        growing_clear(&coco->text);
        for (uint64_t i = coco->first[image]; i < coco->first[image + 1]; i++) {
                uint8_t value[16];
                size_t n = coco_value_of(coco, column, coco_annotation(&coco->annotations, coco->order[i]), value);
                int r = growing_append(&coco->text, value, n);

                if (r < 0)
                        return r;
        }
        return index_builder_set_value(builder, idx, coco->text.bytes ? coco->text.bytes : (const uint8_t *)"",
                                       coco->text.n_bytes);
}

static int give_image(struct coco *coco, size_t image, struct index_builder *builder, const uint32_t idx[N_COLUMNS]) {
        const struct coco_image *found = coco_image(&coco->annotations, image);
        struct index_row row;
        int r = file_paths_give(&coco->annotations.paths, found->path, coco->root_fd, builder, &row);

        for (uint32_t i = 0; i < N_COLUMNS && r == 0; i++) {
                if (idx[i] == LEFT_OUT)
                        continue;
                if (i == IMAGE_ID)
                        r = index_builder_set_value(builder, idx[i], &found->id, sizeof(found->id));
                else if (i == SEGMENTATION)
                        r = give_segmentations(coco, image, builder, idx[i]);
                else
                        r = give_column(coco, image, i, builder, idx[i]);
        }
        return r < 0 ? r : index_builder_add_sample(builder, &row, 0);
}

/* The categories, in the order of the labels. */
static int give_names(const struct coco *coco, struct index_builder *builder) {
        size_t n = coco_n_names(&coco->annotations);
        int r = 0;

        index_builder_set_only_names(builder);
        for (size_t i = 0; i < n && r == 0; i++)
                r = index_builder_add_class(builder, coco_name(&coco->annotations, i));
        return r;
}

static int coco_make_index(struct coco *coco, struct index_builder **ret_builder) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        uint32_t idx[N_COLUMNS], idx_root;
        int r = coco_group(coco);

        if (r == 0)
                r = index_builder_new("coco", 1, &builder);
        if (r < 0)
                return r;
        index_builder_set_field(builder, 0, "image", FIELD_PICTURE, false);
        for (uint32_t i = 0; i < N_COLUMNS && r == 0; i++) {
                idx[i] = LEFT_OUT;
                if (!refusals_have(coco->refusals, COLUMNS[i].name))
                        r = index_builder_add_column(builder, &COLUMNS[i], &idx[i]);
        }
        if (r == 0 && idx[LABELS] != LEFT_OUT)
                r = give_names(coco, builder);
        if (r == 0)
                r = index_builder_add_dir(builder, "", &coco->folder, &idx_root);
        for (size_t i = 0; i < coco_n_images(&coco->annotations) && r == 0; i++) {
                r = give_image(coco, i, builder, idx);
                if (r == 0 && i % 1024 == 0)
                        r = coco_look_up(i, coco);
        }
        if (r == 0)
                *ret_builder = TAKE_PTR(builder);
        return r;
}

static int coco_look_at_folder(struct coco *coco) {
        _cleanup_(closep) int fd = beneath_open(coco->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : index_settle(fd, &coco->settled_ns, &coco->folder);

        return r < 0 ? why_errno(coco->why, r, "%s: the folder cannot be read", coco->files->root) : 0;
}

static int coco_build(int root_fd, const struct files *files, const struct format_options *options,
                      const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(coco_fini) struct coco coco = { .root_fd = root_fd,
                                                  .files = files,
                                                  .watch = watch,
                                                  .refusals = format_refusals(options),
                                                  .why = why,
                                                  .fd = -1 };
        int r;

        coco.path = format_option(options, "annotations");
        if (!coco.path)
                return why_set(why, -EINVAL,
                               "%s: the format coco needs the key annotations: the file with the boxes, such as "
                               "\"/data/coco/annotations/instances_train2017.json\"",
                               files->root);
        r = coco_look_at_folder(&coco);
        if (r == 0)
                r = read_annotations(&coco);
        if (r < 0)
                return r;
        r = coco_make_index(&coco, ret_builder);
        if (r == -EIO)
                return why_set(why, r, "annotations: %s changed while it was read; try again", coco.path);
        return r < 0 && r != -ECANCELED ? index_builder_refused(r, coco.path, coco.why) : r;
}

/* ---- masks ----------------------------------------------------------------------------------------------------- */

static bool coco_find(const struct schema *schema, const char *name, uint32_t *ret_idx) {
        for (uint32_t i = 0; i < schema->n_fields; i++)
                if (strcmp(schema->fields[i].name, name) == 0) {
                        *ret_idx = i;
                        return true;
                }
        return false;
}

/* How many annotations has an image at most? Any column that has a row for each says so. */
static bool find_most(const struct source *index, uint32_t *ret_n) {
        static const unsigned ROWS[] = { ISCROWD, AREA, CATEGORY_IDS, BOXES };
        uint64_t longest = 0;
        uint32_t idx;
        size_t at = 0;

        while (at < ARRAY_SIZE(ROWS) && !coco_find(&index->schema, COLUMNS[ROWS[at]].name, &idx))
                at++;
        if (at == ARRAY_SIZE(ROWS))
                return false;
        for (uint64_t i = 0; i < index->n_samples; i++) {
                uint64_t n_bytes = source_length(index, i, idx);

                longest = n_bytes > longest ? n_bytes : longest;
        }
        *ret_n = (uint32_t)(longest / dlp_dtype_bytes(COLUMNS[ROWS[at]].dtype) / (ROWS[at] == BOXES ? 4 : 1));
        return true;
}

/* The segmentations once more, as what they become with a picture. */
static void coco_extend(struct source *index) {
        struct schema *schema = &index->schema;
        struct schema_field masks = { .name = "masks", .kind = FIELD_MASKS };
        uint32_t idx_segmentation;

        if (schema->n_fields == SCHEMA_FIELDS_MAX ||
            !coco_find(schema, COLUMNS[SEGMENTATION].name, &idx_segmentation) || !find_most(index, &masks.max_rows))
                return; /* not an index of ours, or nothing of its annotations can be served */
        masks.same_as = idx_segmentation + 1;
        schema->fields[schema->n_fields++] = masks;
}

static const struct setting OPTIONS[] = {
        { .name = "annotations",
          .kind = SETTING_OPTIONAL,
          .max = PATH_MAX - 1,
          .prose = "The file with boxes and categories, such as "
                   "/data/coco/annotations/instances_train2017.json. The format needs it." },
        { 0 },
};

const struct format format_coco = {
        .name = "coco",
        .doc = "A folder of pictures whose annotations are in a JSON file, as for COCO's object detection. Samples "
               "are the images that the file lists, in the order of their ids, as torchvision's CocoDetection has "
               "them.",
        .example = "path = \"/data/train2017\" annotations = \"/data/instances_train2017.json\"",
        .options = OPTIONS,
        .revision = "names of categories",
        .file_option = "annotations",
        .build = coco_build,
        .extend = coco_extend,
};

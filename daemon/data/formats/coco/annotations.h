/* data/formats/coco/annotations.h: what a COCO file of annotations says: images, boxes, categories.
 *
 * The file is read as a stream, in one pass, in any order of its members. Memory: 64 bytes an annotation, and the names
 * of the images. Segmentations, which are most of such a file, are not kept: only where they lie. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/data/formats/listing/file_paths.h"
#include "daemon/data/growing.h"
#include "daemon/data/refusals.h"
#include "proto/base/why.h"

struct coco_image {
        int64_t id;
        uint64_t path; /* in coco_annotations.paths */
};

struct coco_annotation {
        int64_t image_id;
        int64_t category_id;
        int64_t is_crowd;
        uint64_t segmentation; /* offset in the file; with n_segmentation 0 there is none */
        uint32_t n_segmentation;
        float box[4]; /* x, y of the left upper and of the right lower corner, computed as torchvision does */
        float area;
};

struct coco_category {
        int64_t id;
        uint64_t number; /* its place in the file */
        uint64_t name;   /* in coco_annotations.names; COCO_NO_NAME */
};

#define COCO_NO_NAME UINT64_MAX

struct coco_annotations {
        struct growing images;      /* struct coco_image; coco_read() sorts them by id, as torchvision does */
        struct growing annotations; /* struct coco_annotation, in the order of the file */
        struct growing categories;  /* struct coco_category, sorted by id, each once: the last one counts, as in
                                     * pycocotools */
        struct growing names;       /* of categories, each with its NUL */
        struct file_paths paths;
};

void coco_annotations_fini(struct coco_annotations *annotations);

size_t coco_n_images(const struct coco_annotations *annotations);
size_t coco_n_annotations(const struct coco_annotations *annotations);
const struct coco_image *coco_image(const struct coco_annotations *annotations, size_t idx);
const struct coco_annotation *coco_annotation(const struct coco_annotations *annotations, size_t idx);

/* How many categories have names that are known: all of them, or none. */
size_t coco_n_names(const struct coco_annotations *annotations);
const char *coco_name(const struct coco_annotations *annotations, size_t label);

/* Where an id is; -1: nowhere. */
int64_t coco_find_image(const struct coco_annotations *annotations, int64_t id);
int64_t coco_find_category(const struct coco_annotations *annotations, int64_t id);

/* Is called now and then with the number of images and annotations so far; another return value than 0 ends the
 * reading with it. */
typedef int (*coco_progress)(uint64_t n, void *userdata);

/* Reads a file of `n_file` bytes. What is wrong with a value that only some columns need is added to the refusals of
 * these columns; without `refusals` (NULL) it is an error. Returns 0; -ECANCELED; -EBADMSG, -EINVAL, -ERANGE or -E2BIG
 * if it is damaged or not of this format; -ENOMEM or another errno; `why` does not name the file. Blocks for the disk.
 */
int coco_read(int fd, uint64_t n_file, coco_progress progress, void *userdata, struct coco_annotations *annotations,
              struct refusals *refusals, struct why *why);

/* store/plan/plan.h: what shall lie on every node in the end: files in order, and where each comes from.
 *
 * Every origin (a manifest, a URL list, an object store's listing, a folder, one file) is surveyed into a plan by one
 * node and sent to the others as text, so that all move the same bytes. A plan never changes once it is finished; any
 * number of threads may read it.
 *
 * The text form is what users write as a manifest, too: JSON Lines, one file a line, `path`, `size`, and where known
 * `sha256`, `urls`, `etag`, `unpack` (and `http_last_modified`, for other nodes alone); other keys are passed over, a
 * key that comes twice is refused. The digest is over
 * path, size, sha256 (else etag) and unpack of each file in order: the same content has the same digest wherever it is
 * fetched from.
 *
 * Memory: about 100 bytes a file and its texts, in a few large pieces. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/record/record_place.h"
#include "proto/base/why.h"

#define PLAN_FILES_MAX    (1ull << 32) /* far above any folder tree that is read file by file */
#define PLAN_SIZE_UNKNOWN UINT64_MAX   /* only while it is surveyed: a finished plan knows all sizes */
#define PLAN_URLS_MAX     16u          /* mirrors a file */
#define PLAN_BYTES_MAX    (1ull << 53) /* a file: JSON's numbers are doubles, which are exact below this (8 PiB) */
#define PLAN_LINE_MAX     (1u << 20)   /* bytes a line of the text form: 16 long URLs and then some */
#define PLAN_UNFINISHED   ".dlstage-"  /* what the names of unfinished files begin with; no path of a plan does */

struct plan_file {
        const char *path; /* relative to the dataset's folder; checked by plan_path_check() */
        uint64_t n_bytes;
        const uint8_t *sha256;   /* 32 bytes, or NULL: the origin does not say */
        const char *etag;        /* as the origin says it, quotes and all; NULL: unknown */
        const char *modified;    /* Last-Modified where the origin says neither; in no digest: it only holds together
                                  * what is fetched of the file in parts; NULL: unknown, or not needed */
        const char *const *urls; /* those of record/url.h, in the order in which they are tried */
        uint32_t n_urls;         /* at least 1 */
        bool unpack;             /* an archive: what is in it belongs to the dataset, itself does not */
};

struct plan;
/* Adds a copy of a file to a plan that is begun; *begun NULL: it begins with this file (plan_free() if it is not
 * finished). Returns 0; -EINVAL with `why` naming the path (not allowed, no URL, a URL with a password in it, ...);
 * -E2BIG; -ENOMEM. */
int plan_add(struct plan **begun, const struct plan_file *file, struct why *why);

/* Sorts by path (bytes), looks for what cannot be: two files of one path, of paths that differ in case alone (they
 * would be one on some file systems), a file where another has a folder, an unknown size, no file at all. Returns 0;
 * -EINVAL with `why` naming both; -E2BIG; -ENOMEM. *begun is NULL afterwards, whatever is returned. */
int plan_finish(struct plan **begun, struct plan **ret_plan, struct why *why);

#define PLAN_DEPTH_MAX 64u /* folders in each other: each is an inode, whatever lies in it */

/* A path that may lie below a dataset's folder: relative, no empty, "." or ".." part, UTF-8 without control characters,
 * no part above 255 bytes, below PATH_MAX in all, in PLAN_DEPTH_MAX folders at most, and not beginning with the name
 * that unfinished things have. Returns 0, or -EINVAL with `why` quoting it. */
int plan_path_check(const char *path, size_t n_bytes, struct why *why);

/* Reads the text form. `base_url` is where entries without `urls` lie: its last part is replaced by their path
 * (percent-encoded). NULL: each must have `urls`. `source` names the text in messages ("manifest.jsonl:17: ...").
 * `unpack_archives`: what origin_is_archive() says is one gets `unpack` unless its line says otherwise. Returns 0,
 * -EINVAL with `why`, -ENOMEM. */
int plan_parse(const char *text, size_t n_bytes, const char *source, const char *base_url, bool unpack_archives,
               struct plan **ret_plan, struct why *why);

/* May a text with these first bytes be such a one? False only if its first line is a JSON object that has no "path", or
 * has it alone of a manifest's keys: that is data. -EAGAIN: the line has not ended, and may be one. */
int plan_may_begin(const char *text, size_t n_bytes);

/* Writes the text form, every field of each file, one line a file, sorted: the same plan gives the same bytes. The text
 * is the caller's (free). Returns 0 or -ENOMEM. */
int plan_write(const struct plan *plan, char **ret_text, size_t *ret_n_bytes);

void plan_free(struct plan *plan); /* NULL is fine */
void plan_freep(struct plan **plan);

/* What was fetched for a plan with the same digest may be kept for this one if this is the same, too: the digest, and
 * every `modified`. */
const char *plan_state(const struct plan *plan);

uint64_t plan_n_files(const struct plan *plan);
uint64_t plan_n_bytes(const struct plan *plan); /* of all files */
const char *plan_digest(const struct plan *plan);
const struct plan_file *plan_file(const struct plan *plan, uint64_t idx);

/* Are there archives that are to be unpacked? */
bool plan_has_archives(const struct plan *plan);

/* The index of a path, or -1. Binary search. */
int64_t plan_find(const struct plan *plan, const char *path);

/* The path as file systems see it that do not tell cases apart: lower case, by Unicode's simple rules. Two paths with
 * the same fold are one file there. The path must be one that plan_path_check() allows. Returns its length. */
#define PLAN_FOLD_SIZE (2u * PATH_MAX)
size_t plan_path_fold(const char *path, char ret_folded[PLAN_FOLD_SIZE]);

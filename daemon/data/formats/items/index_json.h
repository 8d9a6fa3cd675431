/* data/formats/items/index_json.h: the index.json of a folder of shards, or another JSON file that describes some. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/base/json/json_value.h"
#include "daemon/data/growing.h"
#include "proto/base/why.h"

struct index_json {
        uint8_t *bytes; /* in `memory` */
        size_t n_bytes;
        struct growing memory;
        struct stat status;
};

/* Reads ROOT/index.json, of at most 1 GiB. Returns 0 or an errno with `why`, which names the file. Blocks for the
 * disk. */
int index_json_read(struct index_json *json, int root_fd, const char *root, int64_t *settled_ns, struct why *why);

/* The same for another file of the root. */
int index_json_read_as(struct index_json *json, int root_fd, const char *root, const char *name, int64_t *settled_ns,
                       struct why *why);

/* Takes a struct of zeroes. */
void index_json_fini(struct index_json *json);

/* A member of an object: JSON_ABSENT if it is missing or null. Else 0, or -EBADMSG with `why`. */
int index_json_member(const struct json_token *object, const char *path, struct json_token *ret_value, struct why *why);

/* The same for a text that has to be there, with fewer than `size` bytes, and for a whole number. */
int index_json_text(const struct json_token *object, const char *path, char *text, size_t size, struct why *why);
int index_json_number(const struct json_token *object, const char *path, int64_t *ret_number, struct why *why);

/* Calls take() for each element of an array that has to be there, until it returns an error, which is returned. */
int index_json_each(const struct json_token *object, const char *path,
                    int (*take)(void *userdata, const struct json_token *element, struct why *why), void *userdata,
                    struct why *why);

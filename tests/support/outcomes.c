#include "tests/support/outcomes.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/data/refusals.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

void outcome_find(const struct tree *tree, const struct format *format, const char *name, const char *options,
                  const struct index_watch *watch, struct outcome *ret_outcome) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        struct files files = { .root = tree->root, .names = &name, .n_names = name != NULL };
        _cleanup_(closep) int fd = memfd_create("index", MFD_CLOEXEC);
        _cleanup_(refusals_fini) struct refusals refusals = { 0 };
        struct format_options parsed = { 0 };
        struct refusal refused = { 0 };

        *ret_outcome = (struct outcome){ 0 };
        ck_assert_int_ge(fd, 0);
        ret_outcome->r = format_options_parse(options, format, &parsed, &ret_outcome->why);
        if (ret_outcome->r < 0)
                return;
        parsed.refusals = &refusals;
        ret_outcome->r = format->build(tree->fd, &files, &parsed, watch, &builder, &ret_outcome->why);
        if (ret_outcome->r == 0) {
                while (refusals_next(&refusals, &refused))
                        ck_assert(index_builder_refuse(builder, &refused) == 0);
                ck_assert(index_builder_write(builder, fd, "index", &ret_outcome->why) == 0);
                ret_outcome->n_bytes = (size_t)lseek(fd, 0, SEEK_END);
                ret_outcome->bytes = malloc(ret_outcome->n_bytes);
                ck_assert(ret_outcome->bytes && disk_read_at(fd, ret_outcome->bytes, ret_outcome->n_bytes, 0) == 0);
                ret_outcome->why.text[0] = '\0';
        }
        format_options_fini(&parsed);
}

void outcome_fini(struct outcome *outcome) {
        free(outcome->bytes);
}

void outcome_expect_same(const struct outcome *one, const struct outcome *other, const char *what, const char *way) {
        ck_assert_msg(one->r == other->r && strcmp(one->why.text, other->why.text) == 0, "%s, %s: %d %s; else %d %s",
                      what, way, other->r, other->why.text, one->r, one->why.text);
        ck_assert_msg(one->n_bytes == other->n_bytes &&
                              (one->r < 0 || memcmp(one->bytes, other->bytes, one->n_bytes) == 0),
                      "%s, %s: another index", what, way);
}

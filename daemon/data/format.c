#include "daemon/data/format.h"

/* The table of formats, by name. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/data/scanner.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"

static const struct format *const FORMATS[] = {
        &FORMAT_ARROW,   &FORMAT_COCO, &FORMAT_CSV,      &FORMAT_FOLDER,     &FORMAT_IMAGEFOLDER, &FORMAT_JSONL,
        &FORMAT_LITDATA, &FORMAT_MDS,  &FORMAT_MEGATRON, &FORMAT_NPY,        &FORMAT_NUMBERS,     &FORMAT_PACKED,
        &FORMAT_PARQUET, &FORMAT_TEXT, &FORMAT_TFRECORD, &FORMAT_WEBDATASET,
};

int format_find(const char *name, const struct format **ret_format, struct why *why) {
        char known[256] = "auto";
        struct nearest nearest;

        if (strncmp(name, SCANNER_PREFIX, strlen(SCANNER_PREFIX)) == 0) {
                *ret_format = &FORMAT_PLUGIN;
                return 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(FORMATS); i++) {
                size_t n = strlen(known);

                if (strcmp(name, FORMATS[i]->name) == 0) {
                        *ret_format = FORMATS[i];
                        return 0;
                }
                snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", FORMATS[i]->name);
        }
        return why_set(why, -EINVAL, "unknown format \"%s\"%s; choose one of: %s, " SCANNER_PREFIX "NAME.FORMAT)", name,
                       nearest_in(&nearest, name, strlen(name), known), known);
}

const struct format *format_at(size_t idx) {
        return idx < ARRAY_SIZE(FORMATS) ? FORMATS[idx] : NULL;
}

bool format_option_is_known(const char *key) {
        if (format_option_is_general(key))
                return true;
        for (size_t i = 0; i < ARRAY_SIZE(FORMATS); i++)
                for (size_t k = 0; FORMATS[i]->options && FORMATS[i]->options[k]; k++)
                        if (strcmp(FORMATS[i]->options[k], key) == 0)
                                return true;
        return false;
}

int format_check_files(const struct format *format, const struct files *files, struct why *why) {
        if (files->n_names == 0 || format->takes_files)
                return 0;
        return why_set(why, -ENOTDIR,
                       "%s/%s is a file or a pattern of files; the path of a dataset of the format %s is a "
                       "folder",
                       files->root, files->names[0], format->name);
}

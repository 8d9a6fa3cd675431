/* lib/daemon/daemon_sources.h: the datasets of a loader, as a request names them.
 *
 * A path is made absolute when the loader opens, so that it does not follow the process to another folder; folders on
 * the way are resolved, so that all who mean one dataset write one path. What is there is looked at again for each
 * request. */
#pragma once

#include "client/lib/daemon/dataset_text.h"
#include "proto/frame.h"

struct dli_source {
        Dlp__Source message; /* its texts belong to the dataset, or to the following ones */
        char *anchor;        /* the path, or the folder that it begins with */
};

struct dli_sources {
        struct dli_datasets datasets;
        struct dli_source *list;
        Dlp__Source *pointers[DLP_PARTS_MAX]; /* for a message */
};

/* Reads the option `dataset`, and finds its paths. -EINVAL, -ENOENT, -EACCES, ... with the path and what is wrong; it
 * may be freed in any case. Blocks as the file systems do. */
int dli_sources_make(const char *text, struct dli_sources *ret_sources, struct why *reason);

/* Looks at each path, for a request. -ENOENT and others. Blocks as the file systems do. */
int dli_sources_look(struct dli_sources *sources, struct why *reason);

void dli_sources_free(struct dli_sources *sources); /* takes zeroes */

/* No daemon (-ECONNREFUSED), or none that knows a name (-ENOENT): adds to the reason how to write a path, above all if
 * a file or folder of that name is here. */
void dli_sources_hint(const struct dli_sources *sources, int error, struct why *reason);

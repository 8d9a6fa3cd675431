/* data/scanner.h: somebody above this floor who says what is in the files of a dataset: a format of a plug-in.
 *
 * formats/plugged/ opens the files, reads them window by window, gives the windows to the scanner, and checks all that
 * it says: it may be anything. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/schema.h"
#include "proto/base/why.h"

/* Does the configuration name a plug-in's format, "plugin(blocks.album)"? */
#define SCANNER_PREFIX "plugin("

#define SCANNER_WINDOW_MAX (64ull << 20) /* bytes that may be asked for */

struct scanner_window {
        const char *file; /* relative to the dataset's folder */
        uint32_t idx_file, n_files;
        uint64_t n_file_bytes, offset, n_bytes;

        /* Set by the scanner: what it wants next: from which byte on, and how many bytes at least. */
        uint64_t next_offset, n_wanted;
};

/* A field of a sample. */
struct scanner_cell {
        uint64_t offset, n_bytes; /* in the file */
        const uint8_t *value;     /* not NULL: these bytes instead */
        bool is_absent;
};

/* What a scanner tells of a window. All return 0 or an errno with `why`, which the scanner returns. */
struct scanner_sink {
        int (*field)(void *userdata, const struct schema_field *field, struct why *why);

        /* The next field is one that cannot be served because of `error`, which `why` explains: it is listed, and its
         * cells are passed over. */
        int (*refuse)(void *userdata, const char *name, int error, struct why *why);

        /* `name` NULL: it has none. `n_bytes` counts no NUL. Texts and bytes live as long as the call. */
        int (*sample)(void *userdata, const char *name, const struct scanner_cell *cells, uint32_t n_cells,
                      struct why *why);
        void *userdata;
};

struct scanner {
        const char *text;    /* as it is named, in its normal spelling, with its arguments */
        const char *version; /* of what it does. With the text it decides whether an index is still good */
        const char *endings; /* of the files of a folder that it takes, with blanks between; "": any */

        int (*begin)(struct scanner *scanner, struct why *why);

        /* Where n_bytes of a file go; valid until the next call of room(). NULL: no memory. */
        uint8_t *(*room)(struct scanner *scanner, const char *file, uint64_t n_bytes, struct why *why);

        /* Looks at what is in the room. Blocks as long as the plug-in takes. 0, or an errno with `why`, which says who
         * failed and not over which file. */
        int (*scan)(struct scanner *scanner, struct scanner_window *window, const struct scanner_sink *sink,
                    struct why *why);

        void (*end)(struct scanner *scanner);
};

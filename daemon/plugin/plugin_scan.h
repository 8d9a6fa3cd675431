/* plugin/plugin_scan.h: a format of a plug-in reads the files of a dataset, window after window (dlplugin.h).
 *
 * It has a process of its own. What it says is copied before it is looked at; here
 * it is taken apart, and whether it is possible is the caller's to check: offsets, names, forms and counts are any.
 *
 * A scan is one thread's, which waits for the plug-in; plugins_stop() ends that. */
#pragma once

#include "daemon/plugin/plugins.h"

struct plugin_scan;

/* Which files of a folder it takes, by their endings, with blanks between; "": any. */
const char *plugin_format_endings(const struct plugin *plugin, uint32_t idx_format);

/* Of the file of the plug-in, 64 hexadecimal digits: another one may find other samples. */
const char *plugin_digest(const struct plugin *plugin);

/* Prepares it. -EINVAL: it says that it is not possible, or cannot begin; `why` names it. -ENOMEM. */
int plugin_scan_new(struct plugin *plugin, uint32_t idx_format, const struct plugin_values *values,
                    struct plugin_scan **ret_scan, struct why *why);

/* Takes NULL. */
void plugin_scan_free(struct plugin_scan *scan);

/* Room for n_bytes of a file whose name is `file`, which is copied; valid until it is called again. NULL: there is no
 * memory. */
uint8_t *plugin_scan_room(struct plugin_scan *scan, const char *file, uint64_t n_bytes, struct why *why);

struct plugin_window {
        uint64_t n_file_bytes, offset, n_bytes;
        uint32_t idx_file, n_files;
};

/* What it wants next, unchecked. */
struct plugin_wish {
        uint64_t next_offset, n_wanted;
};

/* Has it look at the bytes in the room. -EBADMSG: it fails, crashed or hung, or what it says has no sense; after that
 * the scan can only be freed. -ECANCELED, -ENOMEM. `why` names it. */
int plugin_scan_ask(struct plugin_scan *scan, const struct plugin_window *window, struct plugin_wish *ret_wish,
                    struct why *why);

struct plugin_cell {
        uint64_t offset, n_bytes; /* in the file */
        const uint8_t *value;     /* not NULL: these bytes instead */
        bool is_absent;
};

/* A field, or a sample, that it has added. It is valid until the next window. */
struct plugin_added {
        /* A field, if it has a name. */
        char field[DLPLUGIN_NAME_MAX];
        uint32_t kind, flags;
        struct dlplugin_form form;

        /* Else a sample. */
        const char *name; /* NULL: none */
        uint32_t n_cells;
        struct plugin_cell cells[DLPLUGIN_FIELDS_MAX];
};

/* The next one of the window. 1; 0: there are no more; -EBADMSG: it is nonsense. */
int plugin_scan_next(struct plugin_scan *scan, struct plugin_added *ret_added, struct why *why);

/* plugin/library.h: a plug-in that is loaded into this process: found, checked, opened, called. Private to this floor.
 *
 * The process is one of the plug-in's own (plugin_process.h). What is asked of a plug-in is a struct plugin_request,
 * the answer a struct plugin_reply, and neither contains a pointer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/plugin/plugin_table.h"

#define PLUGIN_REPLY_TEXT_MAX 256u

enum plugin_question {
        PLUGIN_SETTLE = 1,
        PLUGIN_MEASURE, /* a codec: the size of the picture in the bytes that are the input */
        PLUGIN_RUN,     /* a step, a collation, or a codec that decodes */

        /* A format: what is in the window that is the input, with the file's name and a NUL after it? The output gets
         * records (scan_inside.h), as much of them as it has room for; the other question asks for the rest. */
        PLUGIN_SCAN,
        PLUGIN_SCAN_MORE,
};

struct plugin_request {
        uint32_t question; /* enum plugin_question */
        uint32_t idx_step;
        uint64_t serial; /* of these values and this input: equal numbers are equal steps */
        struct {
                double number;
                char text[DLPLUGIN_TEXT_MAX];
        } values[DLPLUGIN_ARGUMENTS_MAX];
        struct dlplugin_form input,
                output; /* output: of PLUGIN_RUN, as the answers before have said. Of a collation: */
                        /* of one sample, and of one row */

        /* Of what is drawn. */
        uint64_t seed, sample;
        uint32_t epoch, place;

        uint64_t n_input_bytes, n_output_bytes; /* of a collation: of all samples and rows */
        uint32_t n_samples;                     /* of a collation */

        struct {
                uint64_t n_file_bytes, offset, n_bytes;
                uint32_t idx_file, n_files;
        } window; /* of PLUGIN_SCAN */
};

struct plugin_reply {
        int32_t result; /* 0, or negative: `text` says why */
        uint32_t zero;
        struct dlplugin_form output; /* of PLUGIN_SETTLE; of PLUGIN_MEASURE with the picture's size */
        char text[PLUGIN_REPLY_TEXT_MAX];
        struct {
                uint64_t next_offset, n_wanted;
                uint64_t n_bytes, n_left; /* of the records: in the output, and that are still to come */
        } scanned;
};

struct library;
struct library_worker;

/* Finds NAME.so in `folders`, which have ":" between them; the first that has it counts. -ENOENT; -EPERM: strangers
 * could change it, so it is not loaded; `why` continues "the plug-in ". The caller frees the path. Blocks for the
 * disk. */
int library_find(const char *folders, const char *name, char **ret_path, struct stat *ret_status, struct why *why);

/* Is it the file that was found? -ENOEXEC: it was replaced or written to. Asked also after it was loaded: what was
 * loaded in between is then the file that was found. */
int library_is_still(const char *path, const struct stat *found, struct why *why);

/* Loads the file, checks what it says, and calls open(). -ENOEXEC, -EINVAL, -ENOMEM; `why` continues "the plug-in ".
 * Its code runs. */
int library_load(const char *path, const char *name, struct library **ret_library, struct why *why);

const struct plugin_table *library_table(const struct library *library);

/* What one thread needs to call it; that thread's alone. -ENOMEM; or worker_open() failed. */
int library_worker_new(struct library *library, struct library_worker **ret_worker, struct why *why);

/* Asks the plug-in. `input` and `output` are for PLUGIN_RUN. Takes as long as the plug-in does. */
void library_ask(struct library_worker *worker, const struct plugin_request *request, const void *input, void *output,
                 struct plugin_reply *ret_reply);

/* Can an array have this form? A picture of any size is one as well. What a plug-in wants may be nonsense. */
bool plugin_is_form(const struct dlplugin_form *form);
bool plugin_is_any_picture(const struct dlplugin_form *form);

/* The elements' size; 0: unknown dtype. */
size_t plugin_dtype_bytes(uint32_t dtype);

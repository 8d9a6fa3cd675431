#include "daemon/plugin/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plugin/calling.h"
#include "daemon/plugin/scan_inside.h"
#include "proto/base/cleanup.h"

#define SYMBOL "dlplugin"
#define KEPT   16u /* settled steps of a worker: those of a few pipelines */

struct library {
        void *handle;
        struct dlplugin plugin; /* in this daemon's form; it points into the library */
        void *opened;           /* what open() gave */
        bool is_open;
        struct plugin_table table;
        pthread_mutex_t lock; /* DLPLUGIN_SERIAL: around each call; a leaf */
};

/* A step that has been settled. */
struct kept {
        uint64_t serial; /* 0: none */
        uint64_t used;   /* the higher the later */
        void (*forget)(void *state);
        void *state;
        struct dlplugin_form input, output;
};

struct library_worker {
        struct library *library;
        void *state; /* what worker_open() gave */
        bool is_open;
        uint64_t n_asked;
        struct kept kept[KEPT];
        struct scanning *scanning; /* of a format; else NULL */
};

static void library_lock(struct library *library) {
        if (library->plugin.threads == DLPLUGIN_SERIAL)
                pthread_mutex_lock(&library->lock);
}

static void unlock(struct library *library) {
        if (library->plugin.threads == DLPLUGIN_SERIAL)
                pthread_mutex_unlock(&library->lock);
}

/* ---- loading -------------------------------------------------------------------------------------------------------
 */

/* The sizes that structs have had: what a plug-in of an old version brings of them. Structs in arrays have not grown
 * yet; once they do, their arrays are to be copied, too. */
static const size_t SIZES[DLPLUGIN_VERSION + 1] = {
        [1] = offsetof(struct dlplugin, codecs),
        [2] = offsetof(struct dlplugin, formats),
        [3] = sizeof(struct dlplugin),
};

/* The symbol, if it is an object of at least this many bytes. */
static const void *find_symbol(void *handle, size_t n_bytes) {
        const ElfW(Sym) *entry = NULL;
        const void *found = dlsym(handle, SYMBOL);
        Dl_info info;

        if (!found || !dladdr1(found, &info, (void **)&entry, RTLD_DL_SYMENT) || !entry || entry->st_size < n_bytes)
                return NULL;
        return found;
}

static int find_plugin(struct library *library, struct why *why) {
        struct {
                uint32_t version, size;
        } head;
        const void *found = find_symbol(library->handle, sizeof(head));

        if (!found)
                return why_set(why, -ENOEXEC,
                               "has no variable \"" SYMBOL "\": end its source with DLPLUGIN_EXPORT const "
                               "struct dlplugin dlplugin = { DLPLUGIN_HEAD, ... }");
        memcpy(&head, found, sizeof(head));
        if (head.version > DLPLUGIN_VERSION)
                return why_set(why, -ENOEXEC,
                               "was compiled with version %u of dlplugin.h, and this daemon knows versions up to %u: "
                               "update the daemon, or compile the plug-in with the daemon's dlplugin.h",
                               head.version, DLPLUGIN_VERSION);
        if (head.version == 0 || head.size != SIZES[head.version])
                return why_set(why, -ENOEXEC,
                               "says that it is of version %u of dlplugin.h and that its struct has %u bytes, which no "
                               "version has: begin it with DLPLUGIN_HEAD, and compile it with an unchanged dlplugin.h",
                               head.version, head.size);
        if (!find_symbol(library->handle, head.size))
                return why_set(why, -ENOEXEC, "has a variable \"" SYMBOL "\" that is smaller than the %u bytes it says",
                               head.size);
        memcpy(&library->plugin, found, head.size);
        return 0;
}

static int call_open(struct library *library, struct why *why) {
        struct calling calling;
        void *opened = NULL;

        calling_begin(&calling, library->opened);
        if (library->plugin.open && library->plugin.open(&calling.call, &opened) != 0)
                return why_set(why, -EINVAL, "could not begin: %s",
                               calling.text[0] ? calling.text : "it does not say why");
        library->opened = opened;
        library->is_open = true;
        return 0;
}

static int library_open(struct library *library, const char *path, const char *name, struct why *why) {
        int r;

        library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library->handle)
                return why_set(why, -ENOEXEC, "cannot be loaded: %s", dlerror());
        r = find_plugin(library, why);
        if (r == 0)
                r = table_describe(&library->plugin, &library->table, why);
        if (r == 0 && strcmp(library->table.name, name) != 0)
                r = why_set(why, -EINVAL, "calls itself \"%s\": name and file must be the same", library->table.name);
        return r < 0 ? r : call_open(library, why);
}

static void library_free(struct library *library) {
        if (!library)
                return;
        if (library->is_open && library->plugin.close)
                library->plugin.close(library->opened);
        if (library->handle)
                dlclose(library->handle);
        pthread_mutex_destroy(&library->lock);
        free(library);
}

static void library_freep(struct library **library) {
        library_free(*library);
}

int library_load(const char *path, const char *name, struct library **ret_library, struct why *why) {
        _cleanup_(library_freep) struct library *library = calloc(1, sizeof(*library));
        int r;

        if (!library)
                return why_errno(why, -ENOMEM, "cannot be loaded");
        pthread_mutex_init(&library->lock, NULL);
        r = library_open(library, path, name, why);
        if (r == 0)
                *ret_library = TAKE_PTR(library);
        return r;
}

const struct plugin_table *library_table(const struct library *library) {
        return &library->table;
}

/* ---- workers -------------------------------------------------------------------------------------------------------
 */

/* Under the lock. */
static void library_forget(struct kept *kept) {
        if (kept->forget && kept->state)
                kept->forget(kept->state);
        *kept = (struct kept){ 0 };
}

static void library_worker_free(struct library_worker *worker) {
        if (!worker)
                return;
        library_lock(worker->library);
        for (unsigned i = 0; i < KEPT; i++)
                library_forget(&worker->kept[i]);
        scanning_free(worker->scanning);
        if (worker->is_open && worker->library->plugin.worker_close)
                worker->library->plugin.worker_close(worker->state);
        unlock(worker->library);
        free(worker);
}

int library_worker_new(struct library *library, struct library_worker **ret_worker, struct why *why) {
        struct library_worker *worker = calloc(1, sizeof(*worker));
        struct calling calling;
        int r = 0;

        if (!worker)
                return why_errno(why, -ENOMEM, "plug-in");
        worker->library = library;
        calling_begin(&calling, library->opened);
        if (library->plugin.worker_open) {
                library_lock(library);
                r = library->plugin.worker_open(&calling.call, &worker->state);
                unlock(library);
        }
        worker->is_open = r == 0;
        if (r == 0) {
                *ret_worker = worker;
                return 0;
        }
        library_worker_free(worker);
        return why_set(why, -EINVAL, "plug-in %s cannot be used by a worker: %s", library->table.name,
                       calling.text[0] ? calling.text : "it does not say why");
}

/* ---- asking --------------------------------------------------------------------------------------------------------
 */

size_t plugin_dtype_bytes(uint32_t dtype) {
        switch (dtype) {
        case DLPLUGIN_UINT8:
        case DLPLUGIN_INT8:
        case DLPLUGIN_BOOL:
                return 1;
        case DLPLUGIN_UINT16:
        case DLPLUGIN_INT16:
        case DLPLUGIN_FLOAT16:
        case DLPLUGIN_BFLOAT16:
                return 2;
        case DLPLUGIN_UINT32:
        case DLPLUGIN_INT32:
        case DLPLUGIN_FLOAT32:
                return 4;
        case DLPLUGIN_UINT64:
        case DLPLUGIN_INT64:
        case DLPLUGIN_FLOAT64:
                return 8;
        default:
                return 0;
        }
}

bool plugin_is_any_picture(const struct dlplugin_form *form) {
        return form->dtype == DLPLUGIN_UINT8 && form->n_dims == 3 && form->shape[0] == -1 && form->shape[1] == -1 &&
               form->shape[2] == 3;
}

bool plugin_is_form(const struct dlplugin_form *form) {
        uint64_t n_bytes = plugin_dtype_bytes(form->dtype);
        bool is = n_bytes > 0 && form->n_dims < DLPLUGIN_DIMS_MAX;

        for (uint32_t i = 0; is && i < form->n_dims; i++)
                is = form->shape[i] > 0 && !__builtin_mul_overflow(n_bytes, (uint64_t)form->shape[i], &n_bytes);
        return is && n_bytes < UINT64_C(1) << 40;
}

static struct kept *library_find_kept(struct library_worker *worker, uint64_t serial) {
        struct kept *oldest = &worker->kept[0];

        for (unsigned i = 0; i < KEPT; i++) {
                if (worker->kept[i].serial == serial)
                        return &worker->kept[i];
                if (worker->kept[i].used < oldest->used)
                        oldest = &worker->kept[i];
        }
        library_forget(oldest);
        return oldest;
}

/* They are in the table one after the other. */
static const struct dlplugin_codec *library_codec_of(const struct library *library,
                                                     const struct plugin_request *request) {
        uint32_t idx = request->idx_step - library->plugin.n_steps;

        return request->idx_step >= library->plugin.n_steps && idx < library->plugin.n_codecs
                       ? &library->plugin.codecs[idx]
                       : NULL;
}

static const struct dlplugin_format *format_of(const struct library *library, const struct plugin_request *request) {
        uint32_t n_before = library->plugin.n_steps + library->plugin.n_codecs;

        return request->idx_step >= n_before && request->idx_step - n_before < library->plugin.n_formats
                       ? &library->plugin.formats[request->idx_step - n_before]
                       : NULL;
}

static const struct dlplugin_collation *collation_of(const struct library *library,
                                                     const struct plugin_request *request) {
        uint32_t n_before = library->plugin.n_steps + library->plugin.n_codecs + library->plugin.n_formats;

        return request->idx_step >= n_before ? &library->plugin.collations[request->idx_step - n_before] : NULL;
}

static int call_settle(const struct library *library, struct calling *calling, const struct plugin_request *request,
                       struct kept *kept) {
        const struct dlplugin_codec *codec = library_codec_of(library, request);
        const struct dlplugin_format *format = format_of(library, request);
        const struct dlplugin_collation *collation = collation_of(library, request);
        const struct dlplugin_step *step;

        kept->output = request->input;
        if (format) {
                kept->forget = format->forget;
                return format->settle ? format->settle(&calling->call, &kept->state) : 0;
        }
        if (collation) {
                kept->forget = collation->forget;
                return collation->settle
                               ? collation->settle(&calling->call, &request->input, &kept->output, &kept->state)
                               : 0;
        }
        if (codec) {
                kept->output = (struct dlplugin_form){ DLPLUGIN_UINT8, 3, { -1, -1, 3 } };
                kept->forget = codec->forget;
                return codec->settle ? codec->settle(&calling->call, &kept->output, &kept->state) : 0;
        }
        step = &library->plugin.steps[request->idx_step];
        kept->forget = step->forget;
        return step->settle ? step->settle(&calling->call, &request->input, &kept->output, &kept->state) : 0;
}

/* The step with these values for this input, which may be settled already. */
static int library_settle(struct library_worker *worker, struct calling *calling, const struct plugin_request *request,
                          struct kept **ret_kept, struct plugin_reply *reply) {
        struct kept *kept = library_find_kept(worker, request->serial);

        if (kept->serial == 0) {
                struct kept made = { .serial = request->serial, .input = request->input };

                if (calling_answer(calling, call_settle(worker->library, calling, request, &made), reply) < 0)
                        return reply->result;
                for (uint32_t i = made.output.n_dims; i < DLPLUGIN_DIMS_MAX; i++)
                        made.output.shape[i] = 0; /* so that equal forms have equal bytes */
                *kept = made;
        }
        kept->used = ++worker->n_asked;
        *ret_kept = kept;
        return 0;
}

static int fail_with(struct calling *calling, struct plugin_reply *reply, const char *text) {
        snprintf(calling->text, sizeof(calling->text), "%s", text);
        return calling_answer(calling, -1, reply);
}

static void library_measure(const struct dlplugin_codec *codec, struct calling *calling,
                            const struct plugin_request *request, const void *input, struct plugin_reply *reply) {
        uint32_t height = 0, width = 0;

        if (!codec || !codec->measure) {
                fail_with(calling, reply, "delivers pictures of any size and cannot measure them");
                return;
        }
        if (calling_answer(calling, codec->measure(&calling->call, input, request->n_input_bytes, &height, &width),
                           reply) < 0)
                return;
        reply->output.shape[0] = height;
        reply->output.shape[1] = width;
}

/* Is it what was settled, for a picture of this size? */
static bool library_is_as_settled(const struct kept *kept, const struct dlplugin_form *output) {
        struct dlplugin_form form = *output;

        if (plugin_is_any_picture(&kept->output))
                form.shape[0] = form.shape[1] = -1;
        return memcmp(&kept->output, &form, sizeof(form)) == 0;
}

/* n samples, or rows, one after the other. One dimension more is possible: plugin_is_form(). */
static struct dlplugin_form form_of_batch(const struct dlplugin_form *one, uint32_t n) {
        struct dlplugin_form all = { .dtype = one->dtype, .n_dims = one->n_dims + 1, .shape = { n } };

        for (uint32_t i = 0; i < one->n_dims; i++)
                all.shape[i + 1] = one->shape[i];
        return all;
}

/* Makes the output. What is settled does not change any more. */
static int library_run(const struct library *library, struct dlplugin_call *call, const struct plugin_request *request,
                       const struct kept *kept, const void *input, void *output) {
        const struct dlplugin_codec *codec = library_codec_of(library, request);
        const struct dlplugin_collation *collation = collation_of(library, request);

        if (codec)
                return codec->decode(call, input, request->n_input_bytes, &request->output, output);
        if (collation) {
                struct dlplugin_form samples = form_of_batch(&kept->input, request->n_samples),
                                     rows = form_of_batch(&kept->output, request->n_samples);

                return collation->collate(call, &samples, input, &rows, output);
        }
        return library->plugin.steps[request->idx_step].run(call, &kept->input, input, &kept->output, output);
}

static void ask(struct library_worker *worker, struct calling *calling, const struct plugin_request *request,
                const void *input, void *output, struct plugin_reply *reply) {
        struct dlplugin_call *call = &calling->call;
        struct kept *kept = NULL;

        if (library_settle(worker, calling, request, &kept, reply) < 0)
                return;
        reply->output = kept->output;
        if (request->question == PLUGIN_SETTLE)
                return;
        /* Only now: whether this worker had to settle the step must not change what is drawn. */
        dlp_philox_init(&calling->philox, request->seed, request->epoch, request->sample, (uint16_t)request->place);
        call->state = kept->state;
        if (request->question == PLUGIN_SCAN) {
                calling->scanning = worker->scanning;
                scanning_scan(format_of(worker->library, request), calling, request, input, output, reply);
                return;
        }
        if (request->question == PLUGIN_MEASURE) {
                library_measure(library_codec_of(worker->library, request), calling, request, input, reply);
                return;
        }
        if (!library_is_as_settled(kept, &request->output)) {
                fail_with(calling, reply, "wants to deliver another form than at first");
                return;
        }
        calling_answer(calling, library_run(worker->library, call, request, kept, input, output), reply);
}

void library_ask(struct library_worker *worker, const struct plugin_request *request, const void *input, void *output,
                 struct plugin_reply *ret_reply) {
        struct library *library = worker->library;
        struct calling calling;

        *ret_reply = (struct plugin_reply){ 0 };
        if (format_of(library, request) && scanning_prepare(&worker->scanning, ret_reply) < 0)
                return;
        if (request->question == PLUGIN_SCAN_MORE) {
                scanning_more(worker->scanning, request, output, ret_reply);
                return;
        }
        calling_begin(&calling, library->opened);
        calling.call.worker = worker->state;
        calling.call.sample = request->sample;
        calling.call.epoch = request->epoch;
        for (uint32_t i = 0; i < DLPLUGIN_ARGUMENTS_MAX; i++)
                calling.values[i] = (struct dlplugin_value){ request->values[i].number, request->values[i].text };
        library_lock(library);
        ask(worker, &calling, request, input, output, ret_reply);
        unlock(library);
}

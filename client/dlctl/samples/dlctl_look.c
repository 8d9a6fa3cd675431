/* dlctl look: some samples, as a person wants to see them. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/dlctl/control.h"
#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/samples/dlctl_sound.h"
#include "client/dlctl/samples/sample.h"
#include "client/dlctl/waiting.h"
#include "client/include/dlclient.h"
#include "client/lib/progress/progress_message.h"
#include "proto/base/shown/shorten.h"
#include "proto/base/sound_file.h"
#include "proto/limits.h"

#define SHOWN_SAMPLES  5u  /* without INDEX */
#define SHOWN_ELEMENTS 12u /* of an array */
#define PICTURE        ": decode()"
#define HINT           "decode(max_pixels=" /* in the daemon's error about a picture for which there is no room */

struct look {
        struct context *context;
        const char *dataset, *folder; /* folder: --save, or NULL */
        struct sample_printer *printer;
        struct text text;
        struct dlc_loader *shown, *stored; /* as a person sees them; the stored bytes, with --save */
        char shown_pipeline[DLP_PIPELINE_MAX], stored_pipeline[DLP_PIPELINE_MAX];
        unsigned n_opened;           /* loaders */
        unsigned long long n_pixels; /* of the largest picture so far for which there was no room; 0: none */
};

/* ---- what to ask for ------------------------------------------------------------------------------------------- */

/* Only names that a pipeline can contain. */
static bool can_be_named(const char *name) {
        static const char NAMES[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/";

        return name[0] && name[strspn(name, NAMES)] == '\0';
}

/* Drawn, and only together with a picture. */
static bool is_masks(const Dlp__Field *field) {
        return strcmp(field->kind, "masks") == 0;
}

static void dlctl_look_append(char *text, size_t size, const char *one, const char *other, const char *third) {
        size_t n = strlen(text);

        snprintf(text + n, size - n, "%s%s%s", one, other, third);
}

/* "image: decode(); label; caption;", and of what is stored "image: raw; caption: raw". */
static void make_pipelines(const Dlp__Dataset *dataset, char *shown, char *stored, size_t size) {
        unsigned n_shown = 0;

        shown[0] = stored[0] = '\0';
        for (size_t i = 0; i < dataset->n_fields && n_shown < DLP_TENSORS_MAX; i++) {
                const Dlp__Field *field = dataset->fields[i];
                bool is_picture = strcmp(field->kind, "picture") == 0;

                if (!can_be_named(field->name) || is_masks(field))
                        continue;
                n_shown++;
                dlctl_look_append(shown, size, shown[0] ? "; " : "", field->name, is_picture ? PICTURE : "");
                if (field->stored &&
                    (is_picture || strcmp(field->kind, "bytes") == 0 || strcmp(field->kind, "sound") == 0))
                        dlctl_look_append(stored, size, stored[0] ? "; " : "", field->name, ": raw");
        }
        if (shown[0]) /* names, also if the only one is that of a step */
                dlctl_look_append(shown, size, ";", "", "");
}

/* A sample is shown without them, which must not look as if the dataset did not have them. */
static void tell_left_out(const Dlp__Dataset *dataset) {
        for (size_t i = 0; i < dataset->n_fields; i++)
                if (!can_be_named(dataset->fields[i]->name))
                        fprintf(stderr,
                                "dlctl: the field \"%s\" is not shown: a pipeline cannot contain its name; give it "
                                "another one in the configuration: fields = \"NAME=%s\"\n",
                                dataset->fields[i]->name, dataset->fields[i]->name);
                else if (is_masks(dataset->fields[i]))
                        fprintf(stderr,
                                "dlctl: the field \"%s\" is not shown: it is drawn together with its picture, for a "
                                "pipeline such as \"image, %s: decode()\"\n",
                                dataset->fields[i]->name, dataset->fields[i]->name);
}

static int ask_once(const struct look *look, Dlp__Reply **ret_reply) {
        Dlp__DatasetsRequest body = DLP__DATASETS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        struct control *control;
        const char *name;
        int r = control_open_dataset(look->context, look->dataset, &control, &name);

        if (r != EXIT_DONE)
                return r;
        body.name = (char *)(uintptr_t)name;
        request.body_case = DLP__REQUEST__BODY_DATASETS;
        request.datasets = &body;
        r = control_ask(control, &request, DLP__REPLY__BODY_DATASETS, ret_reply);
        control_close(control);
        return r;
}

static void show_indexing(const struct look *look, const Dlp__Dataset *dataset) {
        struct dlp_progress progress;
        char text[DLP_TEXT_MAX];

        dli_progress_take(dataset->progress, &progress);
        shorten(text, sizeof(text), "dataset %s is indexing%s%s", look->dataset, dataset->text[0] ? ": " : "",
                dataset->text);
        if (!waiting_is_drawn())
                waiting_say(text);
        else if (progress.phase[0])
                waiting_draw(look->dataset, &progress);
}

/* Waits while the dataset is indexed, as a trainer does. */
static int dlctl_look_ask(struct look *look, uint64_t *ret_n_samples) {
        const struct timespec tick = { .tv_nsec = 200000000 };
        const Dlp__Dataset *dataset;
        Dlp__Reply *reply;
        int r;

        for (;;) {
                r = ask_once(look, &reply);
                if (r != EXIT_DONE)
                        return r;
                dataset = reply->datasets->n_datasets == 1 ? reply->datasets->datasets[0] : NULL;
                if (!dataset || dataset->n_fields > 0 || strcmp(dataset->state, "indexing") != 0)
                        break;
                show_indexing(look, dataset);
                dlp__reply__free_unpacked(reply, NULL);
                nanosleep(&tick, NULL);
        }
        waiting_end();
        if (!dataset)
                r = fail(EXIT_REFUSED, "dataset %s: the configuration has no such dataset; dlctl datasets lists them",
                         look->dataset);
        else if (dataset->n_fields == 0)
                r = fail(EXIT_REFUSED, "dataset %s is %s: %s", look->dataset, dataset->state, dataset->text);
        else {
                make_pipelines(dataset, look->shown_pipeline, look->stored_pipeline, sizeof(look->shown_pipeline));
                tell_left_out(dataset);
                *ret_n_samples = dataset->n_samples;
        }
        dlp__reply__free_unpacked(reply, NULL);
        return r;
}

/* Opens a loader that begins with sample `idx`. */
static int open_loader(struct look *look, const char *pipeline, const char *on_error, uint64_t idx,
                       struct dlc_loader **ret_loader) {
        struct dlc_options o = DLC_OPTIONS_INIT;
        char job[64];
        int r;

        snprintf(job, sizeof(job), "look-%ld-%u@%lld", (long)getpid(), look->n_opened++, (long long)time(NULL));
        o.dataset = look->dataset;
        o.socket = look->context->socket;
        o.pipeline = pipeline;
        o.job = job;
        o.rank = 0;
        o.world_size = 1;
        o.batch_size = 1;
        o.n_slots = 2;
        o.shuffle = false;
        o.first_position = idx;
        o.on_error = on_error;
        o.on_restart = "raise";
        o.on_progress = waiting_on_progress;
        o.on_wait = waiting_on_wait;
        r = dlc_open(&o, ret_loader);
        waiting_end();
        return r < 0 ? fail(exit_code_of(r), "%s", dlc_last_error()) : EXIT_DONE;
}

/* The pipeline of `shown`, with room for large pictures if one has needed it. */
static int open_shown(struct look *look, const char *on_error, uint64_t idx, struct dlc_loader **ret_loader) {
        char pipeline[DLP_PIPELINE_MAX] = "", decode[64];
        const char *at = look->shown_pipeline, *picture;

        if (look->n_pixels == 0)
                return open_loader(look, at, on_error, idx, ret_loader);
        snprintf(decode, sizeof(decode), ": " HINT "%llu)", look->n_pixels);
        for (; (picture = strstr(at, PICTURE)) != NULL; at = picture + strlen(PICTURE)) {
                size_t n = strlen(pipeline);

                snprintf(pipeline + n, sizeof(pipeline) - n, "%.*s%s", (int)(picture - at), at, decode);
        }
        if (strlen(pipeline) + strlen(at) >= sizeof(pipeline))
                return fail(EXIT_REFUSED, "the fields make a pipeline of more than %u bytes", DLP_PIPELINE_MAX - 1);
        dlctl_look_append(pipeline, sizeof(pipeline), at, "", "");
        return open_loader(look, pipeline, on_error, idx, ret_loader);
}

/* Slots have room for ordinary pictures; the daemon's error says what a larger one needs. */
static bool needs_more_room(struct look *look, const char *error) {
        const char *hint = strstr(error, HINT);
        unsigned long long n_pixels = hint ? strtoull(hint + strlen(HINT), NULL, 10) : 0;

        if (n_pixels <= look->n_pixels)
                return false;
        look->n_pixels = n_pixels;
        return true;
}

/* ---- a sample as text ------------------------------------------------------------------------------------------ */

static void show_shape(struct text *text, const struct dlc_tensor *tensor) {
        text_string(text, dlc_dtype_name(tensor->dtype));
        text_string(text, " [");
        for (uint32_t i = 1; i < tensor->n_dims; i++) {
                if (i > 1)
                        text_string(text, ", ");
                if (tensor->shape[i] < 0)
                        text_u64(text, tensor->places[0].n_bytes / (uint64_t)tensor->strides[i]);
                else
                        text_i64(text, tensor->shape[i]);
        }
        text_string(text, "]");
}

static void show_elements(struct text *text, const struct dlc_tensor *tensor) {
        uint64_t size = dlc_dtype_bytes(tensor->dtype), n = tensor->places ? tensor->places[0].n_bytes / size : 1;
        const uint8_t *bytes = sample_bytes(tensor, 0);

        for (uint32_t i = 1; i < tensor->n_dims && !tensor->places; i++)
                n *= (uint64_t)tensor->shape[i];
        for (uint64_t i = 0; i < n && i < SHOWN_ELEMENTS; i++) {
                text_string(text, " ");
                sample_print_value(text, tensor->dtype, bytes + i * size);
        }
        text_string(text, n > SHOWN_ELEMENTS ? " ..." : "");
}

/* A picture is uint8 [height, width, 3]: no other field of this program has three dimensions and comes from decode().
 */
static bool is_picture(const struct dlc_tensor *tensor) {
        return tensor->dtype == DLC_UINT8 && tensor->n_dims == 4 && tensor->shape[3] == 3 && !tensor->places;
}

static void show_field(struct text *text, const struct dlc_tensor *tensor) {
        struct texts texts;

        text_string(text, "  ");
        text_string(text, tensor->name);
        for (size_t n = strlen(tensor->name); n < 16; n++)
                text_string(text, " ");
        text_string(text, " ");
        if (tensor->places && tensor->places[0].offset == DLC_ABSENT) {
                text_string(text, "absent");
        } else if (is_picture(tensor)) {
                text_string(text, "picture, ");
                text_i64(text, tensor->shape[2]);
                text_string(text, " x ");
                text_i64(text, tensor->shape[1]);
        } else if (tensor->dtype == DLC_BYTES &&
                   sound_print(text, sample_bytes(tensor, 0), tensor->places[0].n_bytes)) {
                /* it is printed */
        } else if (sample_texts(tensor, 0, &texts)) {
                text_u64(text, texts.n);
                text_string(text, texts.n == 1 ? " text: " : " texts: ");
                sample_print_texts(text, &texts, false);
        } else if (tensor->dtype == DLC_TEXT || tensor->dtype == DLC_BYTES) {
                text_string(text, tensor->dtype == DLC_TEXT ? "text, " : "bytes, ");
                text_u64(text, tensor->places[0].n_bytes);
                text_string(text, ": ");
                sample_print_beginning(text, tensor, 0);
        } else {
                if (tensor->n_dims > 1)
                        show_shape(text, tensor);
                show_elements(text, tensor);
        }
        text_string(text, "\n");
}

static void dlctl_look_show(struct look *look, uint64_t idx, const struct dlc_batch *batch) {
        text_string(&look->text, "sample ");
        text_u64(&look->text, idx);
        text_string(&look->text, "\n");
        for (uint32_t i = 0; i < batch->n_tensors; i++)
                show_field(&look->text, &batch->tensors[i]);
}

/* ---- saving ---------------------------------------------------------------------------------------------------- */

/* What a file of these bytes is usually called. */
static const char *dlctl_look_ending_of(const uint8_t *bytes, uint64_t n_bytes, const char *name) {
        static const struct {
                const char *magic, *ending;
        } KNOWN[] = { { "\xff\xd8\xff", ".jpg" }, { "\x89PNG", ".png" },   { "GIF8", ".gif" },
                      { "BM", ".bmp" },           { "II*", ".tif" },       { "MM", ".tif" },
                      { "RIFF", ".webp" },        { "\x93NUMPY", ".npy" }, { "{", ".json" } };
        const struct sound_file *sound = sound_file_of(bytes, n_bytes);

        if (strchr(name, '.'))
                return "";
        if (sound)
                return sound->endings[0];
        for (size_t i = 0; i < sizeof(KNOWN) / sizeof(KNOWN[0]); i++)
                if (n_bytes >= strlen(KNOWN[i].magic) && memcmp(bytes, KNOWN[i].magic, strlen(KNOWN[i].magic)) == 0)
                        return KNOWN[i].ending;
        return "";
}

static int save_file(const struct look *look, uint64_t idx, const struct dlc_tensor *tensor) {
        const uint8_t *bytes = sample_bytes(tensor, 0);
        uint64_t n_bytes = tensor->places[0].n_bytes, n_done = 0;
        char path[4200];
        ssize_t n = 0;
        int fd;

        if (tensor->places[0].offset == DLC_ABSENT)
                return EXIT_DONE;
        snprintf(path, sizeof(path), "%s/%llu.%s%s", look->folder, (unsigned long long)idx, tensor->name,
                 dlctl_look_ending_of(bytes, n_bytes, tensor->name));
        for (char *at = path + strlen(look->folder) + 1; *at; at++)
                if (*at == '/')
                        *at = '_';
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        while (fd >= 0 && n_done < n_bytes && (n = write(fd, bytes + n_done, n_bytes - n_done)) > 0)
                n_done += (uint64_t)n;
        if (fd < 0 || n < 0 || close(fd) < 0)
                return fail(EXIT_REFUSED, "%s: %s", path, strerror(errno));
        return EXIT_DONE;
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

/* A loader that skips what is damaged says nothing of it; one that begins with the sample and fails does. Outcome
 * of dlctl_look_say_why(): it was a lack of room, and the next loader has it. */
#define HAS_ROOM_NOW (-1)

static int dlctl_look_say_why(struct look *look, uint64_t idx) {
        const struct dlc_batch *batch;
        struct dlc_loader *loader;
        int r, code = open_shown(look, "fail", idx, &loader);

        if (code != EXIT_DONE)
                return code;
        r = dlc_next(loader, -1, &batch);
        if (r < 0 && needs_more_room(look, dlc_error(loader)))
                code = HAS_ROOM_NOW;
        else
                code = fail(r < 0 ? exit_code_of(r) : EXIT_REFUSED, "sample %llu: %s", (unsigned long long)idx,
                            r < 0 ? dlc_error(loader) : "it could not be read a moment ago; now it can");
        dlc_close(loader);
        return code;
}

/* Reads one sample, or says why it cannot be read. */
static int fetch(struct look *look, struct dlc_loader **loader, uint64_t idx, const struct dlc_batch **ret_batch) {
        bool is_shown = loader == &look->shown;
        int code, r;

        do {
                code = *loader    ? EXIT_DONE
                       : is_shown ? open_shown(look, "skip", idx, loader)
                                  : open_loader(look, look->stored_pipeline, "skip", idx, loader);
                if (code != EXIT_DONE)
                        return code;
                r = dlc_seek(*loader, 0, idx);
                if (r == 0)
                        r = dlc_next(*loader, -1, ret_batch);
                if (r == 0 && (*ret_batch)->n_samples > 0 && (*ret_batch)->indices[0] == (int64_t)idx)
                        return EXIT_DONE;
                if (r == 0)
                        dlc_release(*loader, *ret_batch);
                code = r < 0 ? fail(exit_code_of(r), "sample %llu: %s", (unsigned long long)idx, dlc_error(*loader))
                             : dlctl_look_say_why(look, idx);
                dlc_close(*loader);
                *loader = NULL;
        } while (code == HAS_ROOM_NOW);
        return code;
}

static int dlctl_look_look_at(struct look *look, enum output_format format, uint64_t idx) {
        const struct dlc_batch *batch;
        int r = fetch(look, &look->shown, idx, &batch);

        if (r != EXIT_DONE)
                return r;
        if (format == OUTPUT_TEXT)
                dlctl_look_show(look, idx, batch);
        else if (sample_print_batch(look->printer, look->shown, batch, &look->text) < 0)
                r = fail(EXIT_REFUSED, "SHA-256 is not available from libcrypto");
        dlc_release(look->shown, batch);
        if (r != EXIT_DONE || !look->folder || !look->stored_pipeline[0])
                return r;
        r = fetch(look, &look->stored, idx, &batch);
        for (uint32_t i = 0; r == EXIT_DONE && i < batch->n_tensors; i++)
                r = save_file(look, idx, &batch->tensors[i]);
        if (r == EXIT_DONE)
                dlc_release(look->stored, batch);
        return r;
}

/* One sample that cannot be shown does not keep the others back. */
static void keep_first(int *code, int next) {
        if (*code == EXIT_DONE)
                *code = next;
}

static int dlctl_look_look_at_all(struct look *look, enum output_format format, uint64_t n_samples, int argc,
                                  char **argv) {
        int r = EXIT_DONE;

        for (uint64_t i = 0; argc == 0 && i < n_samples && i < SHOWN_SAMPLES; i++)
                keep_first(&r, dlctl_look_look_at(look, format, i));
        for (int i = 0; i < argc; i++) {
                char *end;
                unsigned long long idx = strtoull(argv[i], &end, 10);

                if (*end || argv[i][0] < '0' || argv[i][0] > '9' || idx >= n_samples)
                        keep_first(&r, fail(EXIT_REFUSED, "there is no sample \"%s\": their numbers are 0 to %llu",
                                            argv[i], (unsigned long long)n_samples - 1));
                else
                        keep_first(&r, dlctl_look_look_at(look, format, idx));
        }
        text_flush(&look->text);
        return r;
}

static int dlctl_look_begin(struct look *look) {
        if (sample_printer_new(look->context->format, &look->printer) < 0)
                return fail(EXIT_REFUSED, "no memory, or no SHA-256 in libcrypto");
        if (look->folder && look->stored_pipeline[0] && mkdir(look->folder, 0755) < 0 && errno != EEXIST)
                return fail(EXIT_REFUSED, "%s: %s", look->folder, strerror(errno));
        return EXIT_DONE;
}

int look_run(struct context *context, const struct command *command, int argc, char **argv) {
        static struct look look;
        const struct option_row rows[] = {
                { "save", OPTION_TEXT, &look.folder, "DIR",
                  "write the stored bytes of pictures, sounds and other files there" },
        };
        uint64_t n_samples = 0;
        int r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 1, argc, argv);

        if (r >= 0)
                return r;
        text_init(&look.text, STDOUT_FILENO);
        look.context = context;
        look.dataset = argv[optind];
        r = control_choose(context, look.dataset);
        if (r == EXIT_DONE)
                r = dlctl_look_ask(&look, &n_samples);
        if (r == EXIT_DONE)
                r = dlctl_look_begin(&look);
        if (r == EXIT_DONE)
                r = dlctl_look_look_at_all(&look, context->format, n_samples, argc - optind - 1, argv + optind + 1);
        sample_printer_free(look.printer);
        if (look.shown)
                dlc_close(look.shown);
        if (look.stored)
                dlc_close(look.stored);
        return r;
}

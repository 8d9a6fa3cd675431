/* What the daemon knows of samples without reading them: names, numbers such as labels, and the blocks in which they
 * lie. Of these nothing is kept but the names of the last call, and the blocks. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/client_clock.h"
#include "client/lib/loader.h"
#include "proto/limits.h"

_Static_assert(DLC_SAMPLES_ASKED_MAX == DLP_SAMPLES_ASKED_MAX, "samples of one question");

struct question {
        const char *field; /* NULL: names */
        const uint64_t *samples;
        uint32_t n;
        bool lengths; /* of the field, where samples differ in it */
        void *values;
        uint32_t dtype;
};

static int makes_no_sense(struct dlc_loader *loader, const char *what) {
        return why_set(&loader->reason, -EPROTO, "the daemon at %s sent %s of samples that do not add up",
                       loader->connection.path, what);
}

void dli_samples_free(struct dlc_loader *loader) {
        for (uint32_t i = 0; i < loader->n_names; i++)
                free(loader->names[i]);
        free(loader->names);
        loader->names = NULL;
        loader->n_names = 0;
}

static int client_samples_add_names(struct dlc_loader *loader, const Dlp__SamplesReply *reply, uint32_t n_rest) {
        if (reply->n_names == 0 || reply->n_names > n_rest)
                return makes_no_sense(loader, "names");
        for (size_t i = 0; i < reply->n_names; i++) {
                loader->names[loader->n_names] = strdup(reply->names[i]);
                if (!loader->names[loader->n_names])
                        return why_set(&loader->reason, -ENOMEM, "no memory for the names of samples");
                loader->n_names++;
        }
        return 0;
}

static int client_samples_take_numbers(struct dlc_loader *loader, const Dlp__SamplesReply *reply,
                                       struct question *question) {
        uint64_t each = dlp_dtype_bytes(reply->dtype);

        if (each == 0 || each > sizeof(uint64_t) || reply->numbers.len != question->n * each)
                return makes_no_sense(loader, "numbers");
        memcpy(question->values, reply->numbers.data, reply->numbers.len);
        question->dtype = reply->dtype;
        return 0;
}

/* The reply is the caller's (dlp__reply__free_unpacked()), and answers this question. */
static int client_samples_call(struct dlc_loader *loader, Dlp__SamplesRequest *body, Dlp__Reply **ret_reply) {
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        request.body_case = DLP__REQUEST__BODY_SAMPLES;
        request.samples = body;
        r = dli_connection_call(&loader->connection, &request, DLI_ANSWER_TIMEOUT_MS, &loader->reason, &reply, NULL, 0);
        if (r == DLI_ASK_AGAIN)
                return -EREMOTEIO;
        if (r < 0)
                return r;
        if (reply->body_case != DLP__REPLY__BODY_SAMPLES) {
                dlp__reply__free_unpacked(reply, NULL);
                return why_set(&loader->reason, -EPROTO, "the daemon at %s answered another question",
                               loader->connection.path);
        }
        *ret_reply = reply;
        return 0;
}

/* One request for what is missing: all numbers, or the names after those that are there. */
static int client_samples_ask_page(struct dlc_loader *loader, struct question *question) {
        uint32_t first = question->field ? 0 : loader->n_names;
        Dlp__SamplesRequest body = DLP__SAMPLES_REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        body.samples = (uint64_t *)(uintptr_t)(question->samples + first);
        body.n_samples = question->n - first;
        if (question->field)
                body.field = (char *)(uintptr_t)question->field;
        body.lengths = question->lengths;
        r = client_samples_call(loader, &body, &reply);
        if (r < 0)
                return r;
        if (question->field)
                r = client_samples_take_numbers(loader, reply->samples, question);
        else
                r = client_samples_add_names(loader, reply->samples, question->n - first);
        dlp__reply__free_unpacked(reply, NULL);
        return r;
}

static int client_samples_ask(struct dlc_loader *loader, void *userdata) {
        struct question *question = userdata;
        int r = 0;

        if (question->field)
                return client_samples_ask_page(loader, question);
        while (r == 0 && loader->n_names < question->n)
                r = client_samples_ask_page(loader, question);
        return r;
}

static int client_samples_enter(struct dlc_loader *loader, const char *function, const struct question *question,
                                bool has_outputs) {
        int r = dli_loader_enter(loader, function, false);

        if (r < 0)
                return r;
        if (!has_outputs || (question->n > 0 && !question->samples))
                return dli_report(&loader->reason,
                                  why_set(&loader->reason, -EINVAL, "%s: no argument may be NULL", function));
        if (question->n > DLP_SAMPLES_ASKED_MAX)
                return dli_report(&loader->reason,
                                  why_set(&loader->reason, -EINVAL, "%s: %u samples; at most %u are allowed", function,
                                          question->n, DLP_SAMPLES_ASKED_MAX));
        return 0;
}

int dlc_sample_names(struct dlc_loader *loader, const uint64_t *samples, uint32_t n, const char *const **ret_names) {
        struct question question = { .samples = samples, .n = n };
        int r = client_samples_enter(loader, "dlc_sample_names", &question, ret_names);

        if (r < 0)
                return r;
        dli_samples_free(loader);
        loader->names = calloc(n + 1u, sizeof(*loader->names)); /* + 1: never an allocation of 0 bytes */
        if (!loader->names)
                r = why_set(&loader->reason, -ENOMEM, "no memory for the names of %u samples", n);
        if (r == 0)
                r = dli_restart_ask(loader, client_samples_ask, &question);
        if (r < 0) {
                dli_samples_free(loader);
                return dli_report(&loader->reason, r);
        }
        *ret_names = (const char *const *)loader->names;
        return 0;
}

int dlc_sample_numbers(struct dlc_loader *loader, const char *field, const uint64_t *samples, uint32_t n,
                       void *ret_values, uint32_t *ret_dtype) {
        struct question question = { .field = field, .samples = samples, .n = n, .values = ret_values };
        int r = client_samples_enter(loader, "dlc_sample_numbers", &question,
                                     field && field[0] && ret_values && ret_dtype);

        if (r == 0) {
                r = dli_restart_ask(loader, client_samples_ask, &question);
                if (r < 0)
                        dli_report(&loader->reason, r);
        }
        if (r == 0)
                *ret_dtype = question.dtype;
        return r;
}

/* A page at a time, each after the one before. */
static int ask_column(struct dlc_loader *loader, const struct dlp_column_wish *wish, uint64_t n_samples,
                      uint8_t *values, uint32_t *ret_dtype) {
        uint64_t samples[DLP_SAMPLES_ASKED_MAX], numbers[DLP_SAMPLES_ASKED_MAX];
        struct question question = {
                .field = wish->name, .lengths = wish->is_lengths, .samples = samples, .values = numbers
        };

        for (uint64_t first = 0; first < n_samples; first += question.n) {
                uint32_t dtype = question.dtype;
                int r;

                question.n = n_samples - first < DLP_SAMPLES_ASKED_MAX ? (uint32_t)(n_samples - first)
                                                                       : DLP_SAMPLES_ASKED_MAX;
                for (uint32_t i = 0; i < question.n; i++)
                        samples[i] = first + i;
                r = dli_restart_ask(loader, client_samples_ask, &question);
                if (r < 0)
                        return r;
                if (!dlp_column_takes(question.dtype) || (first > 0 && question.dtype != dtype))
                        return makes_no_sense(loader, "numbers");
                memcpy(values + first * dlp_dtype_bytes(question.dtype), numbers,
                       question.n * dlp_dtype_bytes(question.dtype));
        }
        *ret_dtype = question.dtype;
        return 0;
}

int dli_samples_column(struct dlc_loader *loader, const struct dlp_column_wish *wish, struct dlp_column *ret_column,
                       void **ret_values) {
        uint64_t n = loader->info.dataset_samples;
        void *values = calloc(n + 1, sizeof(uint64_t));
        uint32_t dtype;
        int r;

        if (!values)
                return why_set(&loader->reason, -ENOMEM, "no memory for the column \"%s\" of the sampler", wish->name);
        r = ask_column(loader, wish, n, values, &dtype);
        if (r < 0) {
                free(values);
                return r;
        }
        *ret_column = (struct dlp_column){
                .name = wish->name, .dtype = dtype, .values = values, .n_values = n, .n_samples = n
        };
        *ret_values = values;
        return 0;
}

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

static int client_samples_add_blocks(struct dlc_loader *loader, const ProtobufCBinaryData *numbers) {
        uint64_t n = numbers->len / sizeof(uint64_t), *ends, end = 0;

        if (n == 0 || numbers->len % sizeof(uint64_t) > 0 || n > UINT32_MAX - loader->blocks.n)
                return makes_no_sense(loader, "blocks");
        ends = realloc((uint64_t *)(uintptr_t)loader->blocks.ends, (loader->blocks.n + n) * sizeof(*ends));
        if (!ends)
                return why_set(&loader->reason, -ENOMEM, "no memory for the blocks of a dataset");
        loader->blocks.ends = ends;
        memcpy(ends + loader->blocks.n, numbers->data, numbers->len);
        for (uint64_t i = 0; i < n; i++) {
                uint64_t before = loader->blocks.n > 0 ? ends[loader->blocks.n - 1] : 0;

                end = ends[loader->blocks.n];
                if (end <= before || end > loader->info.dataset_samples)
                        return makes_no_sense(loader, "blocks");
                loader->blocks.n++;
        }
        return 0;
}

static int ask_blocks(struct dlc_loader *loader, void *userdata) {
        Dlp__SamplesRequest body = DLP__SAMPLES_REQUEST__INIT;
        uint64_t first = loader->blocks.n;
        Dlp__Reply *reply;
        int r;

        (void)userdata;
        body.samples = &first;
        body.n_samples = 1;
        body.blocks = true;
        r = client_samples_call(loader, &body, &reply);
        if (r < 0)
                return r;
        r = client_samples_add_blocks(loader, &reply->samples->numbers);
        dlp__reply__free_unpacked(reply, NULL);
        return r;
}

int dli_samples_blocks(struct dlc_loader *loader) {
        bool goes_by_them = loader->options.shuffle && dli_order_choice(&loader->options).kind == DLP_ORDER_BLOCKS;
        int r = 0;

        while (r == 0 && goes_by_them && loader->info.dataset_samples > 0 &&
               (loader->blocks.n == 0 || loader->blocks.ends[loader->blocks.n - 1] < loader->info.dataset_samples))
                r = dli_restart_ask(loader, ask_blocks, NULL);
        if (r < 0)
                loader->blocks.n = 0;
        return r;
}

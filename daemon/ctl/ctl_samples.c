/* What is known of samples without reading them: their names, the numbers of a field, such as labels, and in which
 * blocks they lie. Of the dataset that a connection is served from, a page at a time. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/ctl/handlers.h"
#include "daemon/data/orders/source_column.h"

#define PAGE_BYTES    (DLP_PACKET_MAX - 1024u) /* the rest of the reply takes a few dozen */
#define NAME_OVERHEAD 4u                       /* tag and length */

_Static_assert(DLP_SAMPLES_ASKED_MAX * sizeof(uint64_t) <= PAGE_BYTES, "all numbers fit into a reply");

/* Adds names until the page is full. A name alone always fits: it is a path. */
static void fill_names(const struct source *source, const Dlp__SamplesRequest *asked, Dlp__SamplesReply *reply) {
        static char texts[PAGE_BYTES + SOURCE_NAME_SIZE]; /* main thread only, as is the next */
        static char *names[DLP_SAMPLES_ASKED_MAX];
        size_t n_bytes = 0;

        reply->names = names;
        for (size_t i = 0; i < asked->n_samples; i++) {
                size_t length = source_name(source, asked->samples[i], texts + n_bytes) + 1;

                if (n_bytes + length + (i + 1) * NAME_OVERHEAD > PAGE_BYTES)
                        return;
                names[reply->n_names++] = texts + n_bytes;
                n_bytes += length;
        }
}

/* One number for each sample, which is known without reading it. */
static bool gives_numbers(const struct schema_field *field) {
        return field->kind == FIELD_VALUE && !field->is_stored && field->n_dims == 0 && !field->may_be_absent;
}

/* Any number of them, which is none for some samples. */
static bool gives_lists(const struct schema_field *field) {
        return field->kind == FIELD_VALUE && !field->is_stored && (field->n_dims > 0 || field->may_be_absent);
}

static int ctl_samples_find_field(const struct source *source, const char *name, uint32_t *ret_field, struct why *why) {
        char names[256] = "";
        size_t n = 0;

        for (uint32_t i = 0; i < source->schema.n_fields; i++) {
                const struct schema_field *field = &source->schema.fields[i];

                if (strcmp(field->name, name) == 0 && gives_lists(field))
                        return why_set(why, -EINVAL,
                                       "\"%s\" has any number of numbers for each sample; only its batches tell them",
                                       name);
                if (!gives_numbers(field))
                        continue;
                if (strcmp(field->name, name) == 0) {
                        *ret_field = i;
                        return 0;
                }
                if (n < sizeof(names))
                        n += (size_t)snprintf(names + n, sizeof(names) - n, " %s", field->name);
        }
        return why_set(why, -EINVAL,
                       "\"%s\" is not a field whose numbers are known without reading the samples; these are:%s", name,
                       n > 0 ? names : " none");
}

static void fill_lengths(const struct source *source, uint32_t field, const Dlp__SamplesRequest *asked,
                         uint32_t *lengths) {
        for (size_t i = 0; i < asked->n_samples; i++)
                lengths[i] = source_column_length(source, field, asked->samples[i]);
}

static int fill_numbers(const struct source *source, const Dlp__SamplesRequest *asked, Dlp__SamplesReply *reply,
                        struct why *why) {
        static _Alignas(uint64_t) uint8_t numbers[DLP_SAMPLES_ASKED_MAX * sizeof(uint64_t)];
        const struct dlp_column_wish wish = { .name = asked->field, .is_lengths = true };
        uint32_t field = 0;
        uint64_t each;
        int r = asked->lengths ? source_column_find(source, &wish, &field, why)
                               : ctl_samples_find_field(source, asked->field, &field, why);

        if (r < 0)
                return r;
        if (asked->lengths && source_column_counts(source, field, true)) {
                fill_lengths(source, field, asked, (uint32_t *)(void *)numbers);
                reply->dtype = DLP_DTYPE_UINT32;
                reply->numbers.data = numbers;
                reply->numbers.len = asked->n_samples * sizeof(uint32_t);
                return 0;
        }
        reply->dtype = source->schema.fields[field].dtype;
        each = dlp_dtype_bytes(reply->dtype);
        for (size_t i = 0; i < asked->n_samples; i++)
                source_value(source, asked->samples[i], field, numbers + i * each);
        reply->numbers.data = numbers;
        reply->numbers.len = asked->n_samples * each;
        return 0;
}

static int fill_blocks(const struct job *job, const Dlp__SamplesRequest *asked, Dlp__SamplesReply *reply,
                       struct why *why) {
        const struct dlp_blocks *blocks = job->sampling ? &job->sampling->blocks : NULL;
        uint64_t n;

        if (!blocks || blocks->n == 0 || asked->n_samples != 1 || asked->samples[0] >= blocks->n)
                return why_set(why, -EINVAL, "samples: the order of this job has no such block");
        n = blocks->n - asked->samples[0];
        n = n < DLP_SAMPLES_ASKED_MAX ? n : DLP_SAMPLES_ASKED_MAX;
        reply->dtype = DLP_DTYPE_UINT64;
        reply->numbers.data = (uint8_t *)(uintptr_t)(blocks->ends + asked->samples[0]);
        reply->numbers.len = n * sizeof(*blocks->ends);
        return 0;
}

static int ctl_samples_check(const struct source *source, const Dlp__SamplesRequest *asked, struct why *why) {
        uint64_t n_known = source_n_known(source);

        if (asked->n_samples > DLP_SAMPLES_ASKED_MAX)
                return why_set(why, -E2BIG, "samples: %zu at once; at most %u are allowed", asked->n_samples,
                               DLP_SAMPLES_ASKED_MAX);
        for (size_t i = 0; i < asked->n_samples; i++)
                if (asked->samples[i] >= n_known)
                        return why_set(why, -EINVAL, "samples: there is no sample %llu; the dataset has %llu",
                                       (unsigned long long)asked->samples[i], (unsigned long long)n_known);
        return 0;
}

void handle_samples(struct session *session, const Dlp__Request *request) {
        const Dlp__SamplesRequest *asked = request->samples;
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__SamplesReply samples = DLP__SAMPLES_REPLY__INIT;
        const struct source *source;
        struct why why;
        int r;

        if (session->state != SESSION_ATTACHED) {
                session_refuse(session, request->id, -ENOTCONN, "samples: attach first");
                return;
        }
        source = dataset_source(session->feed->dataset->dataset);
        r = ctl_samples_check(source, asked, &why);
        if (r == 0 && asked->blocks)
                r = fill_blocks(session->job, asked, &samples, &why);
        else if (r == 0 && asked->field[0])
                r = fill_numbers(source, asked, &samples, &why);
        else if (r == 0)
                fill_names(source, asked, &samples);
        if (r < 0) {
                session_refuse(session, request->id, r, why.text);
                return;
        }
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_SAMPLES;
        reply.samples = &samples;
        session_reply(session, &reply, NULL, 0);
}

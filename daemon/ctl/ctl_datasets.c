/* The configured datasets, and their state. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ctl/ctl_origin.h"
#include "daemon/ctl/ctl_progress.h"
#include "daemon/ctl/ctl_sources.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/number_values.h"
#include "daemon/ctl/users/access.h"
#include "daemon/data/growth.h"
#include "daemon/pipeline/catalog/catalog_remote.h"
#include "daemon/store/cache/uses.h"
#include "daemon/store/record/url.h"
#include "proto/base/path_url.h"
#include "proto/base/shown/shorten.h"

#define PAGE_DATASETS 4u /* a row is 13 KB at most, most of it a path, an origin and nodes: below a packet */

/* The strings of one row: they belong to the entry, or are made here. */
struct row {
        char path[URL_SHOWN_SIZE]; /* of a URL: without what may be a secret */
        Dlp__Dataset message;
        struct why text, last_error;
        Dlp__Staging staging;
        struct dlp_progress progress;
        Dlp__Progress progress_message;
        Dlp__StagingNode nodes[PROGRESS_NODES_MAX], *node_pointers[PROGRESS_NODES_MAX];
        struct number_list numbers;
        struct dlp_origin origin;
        Dlp__Origin from;
};

static void fill_stream(struct row *row, struct growth *growth) {
        struct growth_report report;

        growth_report(growth, &report);
        row->message.is_stream = true;
        row->message.has_ended = report.is_over;
        row->message.n_samples = report.n_samples;
        row->message.n_shards = report.n_shards;
        row->message.n_bytes = report.n_bytes;
        row->message.n_late = report.n_late;
        if (growth_blocks(growth)) {
                why_set(&row->text, 0, "served in the order of blocks, %s%s%s",
                        report.is_over ? "all files are read" : "while its files arrive",
                        report.trouble.text[0] ? "; " : "", report.trouble.text);
                return;
        }
        why_set(&row->text, 0, "the stream %s%s%s",
                report.is_over           ? "has ended"
                : report.waiting.text[0] ? report.waiting.text
                                         : "is being read",
                report.trouble.text[0] ? "; " : "", report.trouble.text);
}

static void fill_open(struct row *row, struct catalog_dataset *open) {
        const struct source *index = dataset_source(open->dataset);

        row->message.n_classes = index->n_classes;
        row->message.n_shards = index->n_shards;
        row->message.n_hidden = dataset_n_hidden(open->dataset);
        row->message.digest = (char *)(uintptr_t)index->digest;
        pthread_mutex_lock(&open->error_lock);
        row->last_error = open->last_error;
        pthread_mutex_unlock(&open->error_lock);
        row->message.doubt = open->doubt.text;
        if (remote_report(open, &row->origin))
                row->message.from = tell_origin(&row->from, &row->origin);
}

/* ---- the fields of one dataset --------------------------------------------------------------------------------- */

#define FIELDS_BYTES  (40u << 10) /* in a reply, which is a packet, */
#define REFUSED_BYTES (12u << 10) /* beside the row */
#define REFUSED_MAX   512u

struct fields {
        Dlp__RefusedColumn refused[REFUSED_MAX], *refused_pointers[REFUSED_MAX];
        Dlp__Field messages[SCHEMA_FIELDS_MAX], *pointers[SCHEMA_FIELDS_MAX];
        int64_t shapes[SCHEMA_FIELDS_MAX][SCHEMA_DIMS_MAX];
};

static const char *kind_name(enum field_kind kind) {
        static const char *const NAMES[N_FIELD_KINDS] = {
                [FIELD_PICTURE] = "picture", [FIELD_BYTES] = "bytes", [FIELD_VALUE] = "value",
                [FIELD_NUMBER] = "number",   [FIELD_NAME] = "name",   [FIELD_TEXT] = "text",
                [FIELD_SOUND] = "sound",     [FIELD_MASKS] = "masks", [FIELD_TEXTS] = "texts",
        };

        return NAMES[kind];
}

/* What is delivered if the pipeline names the field without a step; masks need steps, and a picture. */
static void fill_field(struct fields *fields, uint32_t idx, const struct schema_field *field) {
        Dlp__Field *message = &fields->messages[idx];
        bool is_value = field->kind == FIELD_VALUE, is_number = field->kind == FIELD_NUMBER;
        bool is_masks = field->kind == FIELD_MASKS;
        uint32_t dtype = is_value                     ? field->dtype
                         : is_number                  ? (uint32_t)DLP_DTYPE_INT64
                         : is_masks                   ? (uint32_t)DLP_DTYPE_UINT8
                         : field->kind == FIELD_TEXT  ? (uint32_t)DLP_DTYPE_TEXT
                         : field->kind == FIELD_TEXTS ? (uint32_t)DLP_DTYPE_TEXTS
                                                      : (uint32_t)DLP_DTYPE_BYTES;

        dlp__field__init(message);
        message->name = (char *)(uintptr_t)field->name;
        message->kind = (char *)(uintptr_t)kind_name(field->kind);
        message->dtype = (char *)(uintptr_t)dlp_dtype_name(dtype);
        fields->shapes[idx][0] = fields->shapes[idx][1] = fields->shapes[idx][2] = -1;
        if (is_value)
                memcpy(fields->shapes[idx], field->shape, sizeof(fields->shapes[idx]));
        message->shape = fields->shapes[idx];
        message->n_shape = is_value ? field->n_dims : is_number ? 0 : is_masks ? 3 : 1;
        message->stored = field->is_stored;
        message->may_be_absent = field->may_be_absent;
        fields->pointers[idx] = message;
}

#define MESSAGE_BYTES 8u /* around one in a list, at most */

static void fill_refused(struct fields *fields, struct row *row, const struct source *source) {
        size_t n_bytes = 0;
        uint32_t n = 0;

        for (; n < source->n_refused && n < REFUSED_MAX; n++) {
                Dlp__RefusedColumn *column = &fields->refused[n];

                dlp__refused_column__init(column);
                column->name = (char *)(uintptr_t)source->refused[n].name;
                column->reason = (char *)(uintptr_t)source->refused[n].reason;
                n_bytes += dlp__refused_column__get_packed_size(column) + MESSAGE_BYTES;
                if (n_bytes > REFUSED_BYTES)
                        break;
                fields->refused_pointers[n] = column;
        }
        row->message.refused = fields->refused_pointers;
        row->message.n_refused = n;
        row->message.n_more_refused = source->n_refused - n;
}

static void fill_fields(struct fields *fields, struct row *row, const struct source *source) {
        size_t n_bytes = 0;
        uint32_t n = 0;

        for (; n < source->schema.n_fields; n++) {
                fill_field(fields, n, &source->schema.fields[n]);
                n_bytes += dlp__field__get_packed_size(&fields->messages[n]) + MESSAGE_BYTES;
                if (n_bytes > FIELDS_BYTES)
                        break;
        }
        row->message.fields = fields->pointers;
        row->message.n_fields = n;
        row->message.n_more_fields = source->schema.n_fields - n;
        fill_refused(fields, row, source);
}

/* ---- what would make room in the cache, of one dataset ---------------------------------------------------------- */

struct going {
        char files[CACHED_GOING_MAX][DLP_TEXT_MAX];
        Dlp__Going messages[CACHED_GOING_MAX], *pointers[CACHED_GOING_MAX];
};

static void fill_going(struct going *going, struct row *row, const struct remote *remote) {
        static const char *const ROOMS[] = {
                [CACHED_GOING_NOTHING] = "all of it has room",
                [CACHED_GOING_PASSING] = "what is here stays, the rest passes through",
                [CACHED_GOING_LAST] = "what all jobs need last makes room",
        };
        struct cached_going found;

        cached_going(remote->cached, &found);
        row->from.room = (char *)(uintptr_t)ROOMS[found.rule];
        for (uint32_t i = 0; i < found.n; i++) {
                const struct cached_going_chunk *chunk = &found.chunks[i];
                Dlp__Going *message = &going->messages[i];

                dlp__going__init(message);
                shorten(going->files[i], sizeof(going->files[i]), "%s", chunk->path);
                message->file = going->files[i];
                message->offset = chunk->offset;
                message->bytes = chunk->n_bytes;
                message->is_needed = chunk->next_ns != UINT64_MAX;
                message->needed_ns = message->is_needed ? chunk->next_ns : 0;
                going->pointers[i] = message;
        }
        row->from.going = going->pointers;
        row->from.n_going = found.n;
}

/* ---- a row ------------------------------------------------------------------------------------------------------ */

static void fill_nodes(struct row *row, const struct progress *progress) {
        for (uint32_t i = 0; i < progress->n_listed; i++) {
                struct node_progress *news = &progress->nodes[i];
                Dlp__StagingNode *node = &row->nodes[i];

                dlp__staging_node__init(node);
                node->name = news->node;
                node->doing = news->doing;
                node->n_bytes_total = news->n_bytes_total;
                node->n_bytes_done = news->n_bytes_done;
                node->n_bytes_origin = news->n_bytes_origin;
                node->n_retries = news->n_retries;
                node->n_errors = news->n_errors;
                row->node_pointers[i] = node;
        }
        row->staging.listed = row->node_pointers;
        row->staging.n_listed = progress->n_listed;
}

static void fill_staging(struct row *row, struct catalog_entry *entry) {
        struct progress *progress = &entry->staged->progress;
        Dlp__Staging *staging = &row->staging, *message = staging;
        struct staging_numbers values;
        const struct staging_numbers *numbers = &values;

        if (!entry->staged->progress_mark)
                return;
        dlp__staging__init(staging);
        number_values_of_staging(entry, &values);
        STAGING_NUMBERS(NUMBER_TELL)
        staging->phase = progress->phase;
        staging->at_work = catalog_is_being_staged(entry);
        staging->error = progress->text;
        staging->bytes_per_second = progress->bytes_per_second;
        staging->seconds_left = progress->seconds_left == UINT64_MAX ? -1 : (int64_t)progress->seconds_left;
        staging->seconds = progress->seconds;
        fill_nodes(row, progress);
        row->message.staging = staging;
}

static void fill_staged(struct row *row, struct catalog_entry *entry) {
        struct catalog_staged *staged = entry->staged;

        row->message.origin = staged->origin;
        if (entry->state == CATALOG_READY) {
                row->message.version = staged->stamp.version;
                row->message.staged_unix = (int64_t)staged->stamp.when;
        }
        if (entry->state == CATALOG_STAGING) {
                catalog_staging_text(entry, row->text.text);
                row->message.state = (char *)(uintptr_t)(catalog_is_being_staged(entry) ? "staging" : "not staged");
        }
        fill_staging(row, entry);
}

/* The state is written beside it. */
static const char *indexing_text(const struct row *row, char sentence[DLP_TEXT_MAX]) {
        struct dlp_progress progress = row->progress;

        progress.phase[0] = '\0';
        return dlp_progress_sentence(&progress, sentence);
}

static void dataset_fill_numbers(struct row *row, struct catalog_entry *entry) {
        Dlp__Dataset *message = &row->message;
        struct number_list *list = &row->numbers;
        struct dataset_numbers values;
        const struct dataset_numbers *numbers = &values;

        number_values_of_dataset(entry, &values);
        list->n = 0;
        DATASET_NUMBERS(NUMBER_TELL)
        message->numbers = list->pointers;
        message->n_numbers = list->n;
}

static void ctl_datasets_fill(struct row *row, struct catalog_entry *entry) {
        struct catalog_dataset *open = catalog_shown(entry);
        char sentence[DLP_TEXT_MAX];

        dlp__dataset__init(&row->message);
        row->text = entry->text;
        row->last_error.text[0] = '\0';
        if (catalog_progress(entry, &row->progress))
                row->message.progress = tell_progress(&row->progress_message, &row->progress);
        row->message.name = entry->name;
        row->message.path = entry->path;
        if (path_is_url(entry->path))
                row->message.path = (char *)(uintptr_t)url_show(entry->path, row->path);
        row->message.format = entry->format;
        row->message.state = (char *)(uintptr_t)catalog_state_name(open ? CATALOG_READY : entry->state);
        dataset_fill_numbers(row, entry);
        if (open) {
                fill_open(row, open);
                if (dataset_source(open->dataset)->growth)
                        fill_stream(row, dataset_source(open->dataset)->growth);
                row->message.format = /* "packed", whatever the origin's format was; what "auto" has found */
                        (char *)(uintptr_t)dataset_source(open->dataset)->format;
        }
        if (entry->state == CATALOG_INDEXING && catalog_is_stream(entry))
                why_set(&row->text, 0, "waits for the first whole shard");
        else if (entry->state == CATALOG_INDEXING)
                why_set(&row->text, 0, "%s%s", indexing_text(row, sentence), catalog_advice(entry));
        if (entry->staged)
                fill_staged(row, entry);
        row->message.text = row->text.text;
        row->message.last_error = row->last_error.text;
}

/* Several as one, "a + b": as a loader of them would see it. `open` is a reference, if they could be opened. */
static void fill_joined(struct row *row, struct fields *fields, const char *text, struct catalog_dataset *open) {
        const struct source *source = open ? dataset_source(open->dataset) : NULL;

        dlp__dataset__init(&row->message);
        row->message.name = (char *)(uintptr_t)text;
        row->message.format = (char *)(uintptr_t) "joined";
        row->message.state = (char *)(uintptr_t)catalog_state_name(open ? CATALOG_READY : CATALOG_INDEXING);
        row->message.text = row->text.text;
        if (!source)
                return;
        row->text.text[0] = '\0';
        row->message.n_samples = source->n_samples;
        row->message.n_classes = source->n_classes;
        row->message.n_bytes = source->total_bytes;
        row->message.n_shards = source->n_shards;
        row->message.digest = (char *)(uintptr_t)source->digest;
        for (uint32_t k = 0; k < open->n_parts; k++)
                row->message.n_errors += ledger_n_samples(open->parts[k]->ledger);
        fill_fields(fields, row, source);
}

static void ctl_datasets_tell(struct session *session, uint64_t id, Dlp__DatasetsReply *datasets) {
        Dlp__Reply reply = DLP__REPLY__INIT;

        reply.id = id;
        reply.body_case = DLP__REPLY__BODY_DATASETS;
        reply.datasets = datasets;
        session_reply(session, &reply, NULL, 0);
}

static void tell_joined(struct session *session, uint64_t id, const char *text) {
        static struct row row; /* main thread only */
        static struct fields fields;
        Dlp__DatasetsReply datasets = DLP__DATASETS_REPLY__INIT;
        Dlp__Dataset *message = &row.message;
        struct catalog_dataset *open = NULL;
        int r = access_find_datasets(session, text, &row.text);

        if (r == 0)
                r = catalog_get_joined(session->server->options.catalog, text, NULL, NULL, 0, &open, &row.text);
        if (r < 0 && r != -EAGAIN) {
                session_refuse(session, id, r, row.text.text);
                return;
        }
        fill_joined(&row, &fields, text, open);
        datasets.datasets = &message;
        datasets.n_datasets = 1;
        ctl_datasets_tell(session, id, &datasets);
        catalog_dataset_unref(open);
}

/* `name` "": all that the session may see. */
static void tell_named(struct session *session, uint64_t id, const char *name, uint32_t first) {
        static struct row rows[PAGE_DATASETS]; /* main thread only */
        static struct fields fields;
        static struct going going;
        struct catalog_dataset *shown;
        Dlp__Dataset *messages[PAGE_DATASETS];
        Dlp__DatasetsReply datasets = DLP__DATASETS_REPLY__INIT;
        struct catalog *catalog = session->server->options.catalog;
        struct catalog_entry *entry;
        char text[DLP_DATASET_MAX];
        struct why why;
        uint32_t idx = 0;
        int r = catalog_normal_text(catalog, name, text, &why);

        if (r < 0) {
                session_refuse(session, id, r, why.text);
                return;
        }
        if (catalog_is_joined(catalog, text)) {
                tell_joined(session, id, text);
                return;
        }
        TAILQ_FOREACH(entry, &catalog->entries, entry) {
                if (name[0] && strcmp(name, entry->name) != 0)
                        continue;
                if (!access_dataset(session, entry) || idx++ < first)
                        continue;
                if (datasets.n_datasets == PAGE_DATASETS) {
                        datasets.next = idx - 1;
                        break;
                }
                ctl_datasets_fill(&rows[datasets.n_datasets], entry);
                shown = name[0] ? catalog_shown(entry) : NULL;
                if (shown)
                        fill_fields(&fields, &rows[datasets.n_datasets], dataset_source(shown->dataset));
                if (shown && shown->remote)
                        fill_going(&going, &rows[datasets.n_datasets], shown->remote);
                messages[datasets.n_datasets] = &rows[datasets.n_datasets].message;
                datasets.n_datasets++;
        }
        datasets.datasets = messages;
        if (name[0] && idx == 0) {
                r = access_find_dataset(session, name, &entry, &why);
                session_refuse(session, id, r, why.text);
                return;
        }
        ctl_datasets_tell(session, id, &datasets);
        if (name[0]) /* after the answer, which is then that of the last try and not that of one which has just begun */
                TAILQ_FOREACH(entry, &catalog->entries, entry)
                        if (strcmp(name, entry->name) == 0 && access_dataset(session, entry))
                                catalog_try_again(entry);
}

struct question {
        struct session *session;
        uint64_t id;
        Dlp__DatasetsRequest *request; /* a copy */
};

static void question_free(struct question *question) {
        if (question->request)
                dlp__datasets_request__free_unpacked(question->request, NULL);
        free(question);
}

static void on_found(void *userdata, int result, const char *text, const struct why *why) {
        struct question *question = userdata;

        if (result == 0)
                tell_named(question->session, question->id, text, 0);
        else if (result != -ECANCELED)
                session_refuse(question->session, question->id, result, why->text);
        question_free(question);
}

static Dlp__DatasetsRequest *ctl_datasets_copy_of(const Dlp__DatasetsRequest *request) {
        uint8_t *bytes = malloc(dlp__datasets_request__get_packed_size(request));
        Dlp__DatasetsRequest *copy = NULL;

        if (bytes)
                copy = dlp__datasets_request__unpack(NULL, dlp__datasets_request__pack(request, bytes), bytes);
        free(bytes);
        return copy;
}

/* They are named by their paths. */
static void ask_for_sources(struct session *session, const Dlp__Request *request) {
        struct question *question = calloc(1, sizeof(*question));
        struct why why;
        int r = -ENOMEM;

        why_set(&why, 0, "datasets: out of memory");
        if (question)
                question->request = ctl_datasets_copy_of(request->datasets);
        if (question && question->request) {
                question->session = session;
                question->id = request->id;
                r = session->state != SESSION_OPEN
                            ? why_set(&why, -EISCONN, "datasets: this connection is attached; open another one")
                            : sources_find(session, question->request->sources, question->request->n_sources, false,
                                           on_found, question, &why);
        }
        if (r == 0)
                return;
        if (question)
                question_free(question);
        session_refuse(session, request->id, r, why.text);
}

void handle_datasets(struct session *session, const Dlp__Request *request) {
        if (request->datasets->n_sources > 0)
                ask_for_sources(session, request);
        else
                tell_named(session, request->id, request->datasets->name, request->datasets->first);
}

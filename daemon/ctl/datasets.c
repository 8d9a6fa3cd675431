/* What is configured, and what has become of it. */
#include <stdio.h>

#include "daemon/ctl/handlers.h"

#define PAGE_DATASETS 8u /* a row is 5.4 KB at most, most of it a path of PATH_MAX: below a packet */

/* The strings of one row: those of the entry, or made here. */
struct row {
        Dlp__Dataset message;
        struct why text, last_error;
};

static void fill_open(struct row *row, struct catalog_dataset *open) {
        const struct index *index = dataset_index(open->dataset);

        row->message.n_samples = index_n_samples(index);
        row->message.n_classes = index_n_classes(index);
        row->message.n_bytes = index_total_bytes(index);
        row->message.digest = (char *)(uintptr_t)index_digest(index);
        row->message.n_errors = ledger_n_samples(open->ledger);
        pthread_mutex_lock(&open->lock);
        row->last_error = open->last_error;
        pthread_mutex_unlock(&open->lock);
}

static void fill(struct row *row, struct catalog_entry *entry) {
        dlp__dataset__init(&row->message);
        row->text = entry->text;
        row->last_error.text[0] = '\0';
        row->message.name = entry->name;
        row->message.path = entry->path;
        row->message.format = entry->format;
        row->message.state = (char *)(uintptr_t)catalog_state_name(entry->state);
        if (entry->state == CATALOG_READY)
                fill_open(row, entry->open);
        if (entry->state == CATALOG_INDEXING)
                why_set(&row->text, 0, "%llu files so far",
                        (unsigned long long)atomic_load_explicit(&entry->n_files, memory_order_relaxed));
        row->message.text = row->text.text;
        row->message.last_error = row->last_error.text;
}

void handle_datasets(struct session *session, const Dlp__Request *request) {
        static struct row rows[PAGE_DATASETS]; /* main thread only */
        Dlp__Dataset *messages[PAGE_DATASETS];
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__DatasetsReply datasets = DLP__DATASETS_REPLY__INIT;
        struct catalog_entry *entry;
        uint32_t idx = 0;

        TAILQ_FOREACH(entry, &session->server->options.catalog->entries, entry) {
                if (idx++ < request->datasets->first)
                        continue;
                if (datasets.n_datasets == PAGE_DATASETS) {
                        datasets.next = idx - 1;
                        break;
                }
                fill(&rows[datasets.n_datasets], entry);
                messages[datasets.n_datasets] = &rows[datasets.n_datasets].message;
                datasets.n_datasets++;
        }
        datasets.datasets = messages;
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_DATASETS;
        reply.datasets = &datasets;
        session_reply(session, &reply, NULL, 0);
}

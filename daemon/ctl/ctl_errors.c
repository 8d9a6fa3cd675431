/* The ledgers of damaged samples, of one dataset or of all that are open.
 *
 * A page's position has the dataset's number in its high bits and the entry's number in its low bits, so that a ledger
 * that grows meanwhile does not move the entries of the others. */
#include <errno.h>
#include <string.h>

#include "daemon/ctl/handlers.h"
#include "daemon/ctl/users/access.h"

#define PAGE_ERRORS   64u
#define PAGE_BYTES    (DLP_PACKET_MAX - 1024u)
#define ROW_OVERHEAD  96u /* numbers, tags, lengths and the field's name */
#define DATASET_SHIFT 40u
#define ENTRY_MASK    ((1ull << DATASET_SHIFT) - 1)

struct row {
        Dlp__SampleError message;
        struct ledger_entry entry;
        char path[INDEX_PATH_SIZE];
};

struct page {
        struct row rows[PAGE_ERRORS];
        Dlp__SampleError *messages[PAGE_ERRORS];
        size_t n_rows, n_bytes;
};

/* Adds an entry. Returns false if the page is full. */
static bool ctl_errors_add(struct page *page, struct catalog_entry *dataset, const struct ledger_entry *entry) {
        struct row *row = &page->rows[page->n_rows];
        size_t n_bytes;

        if (page->n_rows == PAGE_ERRORS)
                return false;
        row->entry = *entry;
        source_name(dataset_source(dataset->open->dataset), entry->sample, row->path);
        n_bytes = ROW_OVERHEAD + strlen(dataset->name) + strlen(row->path) + strlen(row->entry.error.text);
        if (page->n_bytes + n_bytes > PAGE_BYTES)
                return false;
        page->n_bytes += n_bytes;

        dlp__sample_error__init(&row->message);
        row->message.dataset = dataset->name;
        row->message.index = row->entry.sample;
        row->message.path = row->path;
        row->message.error = row->entry.error.text;
        row->message.field = row->entry.field;
        row->message.n_met = row->entry.n_met;
        row->message.first_unix = row->entry.first_unix;
        row->message.last_unix = row->entry.last_unix;
        page->messages[page->n_rows++] = &row->message;
        return true;
}

/* Is it one of those that the text names, "a" or "a + b"? Of "" all are. */
static bool is_asked_for(struct catalog *catalog, const char *text, const struct catalog_entry *dataset) {
        char name[DLP_DATASET_MAX];
        const char *at = NULL;

        while (text[0] && catalog_next_name(catalog, text, &at, name))
                if (strcmp(name, dataset->name) == 0)
                        return true;
        return !text[0];
}

/* Goes through the datasets from position `first` on. Returns the position after the page; 0: there is no more. */
static uint64_t ctl_errors_fill_page(const struct session *session, const char *text, uint64_t first,
                                     struct page *page) {
        struct catalog *catalog = session->server->options.catalog;
        struct catalog_entry *dataset;
        struct ledger_entry entry;
        uint64_t number = 0;

        TAILQ_FOREACH(dataset, &catalog->entries, entry) {
                uint64_t idx = number == first >> DATASET_SHIFT ? first & ENTRY_MASK : 0;

                if (number++ < first >> DATASET_SHIFT || !is_asked_for(catalog, text, dataset) ||
                    dataset->state != CATALOG_READY || !access_dataset(session, dataset))
                        continue;
                for (; ledger_at(dataset->open->ledger, idx, &entry); idx++)
                        if (!ctl_errors_add(page, dataset, &entry))
                                return (number - 1) << DATASET_SHIFT | idx;
        }
        return 0;
}

void handle_errors(struct session *session, const Dlp__Request *request) {
        static struct page page; /* main thread only */
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__ErrorsReply errors = DLP__ERRORS_REPLY__INIT;
        char text[DLP_DATASET_MAX];
        struct why why;
        int r = catalog_normal_text(session->server->options.catalog, request->errors->dataset, text, &why);

        if (r == 0 && text[0])
                r = access_find_datasets(session, text, &why);
        if (r < 0) {
                session_refuse(session, request->id, r, why.text);
                return;
        }
        page.n_rows = page.n_bytes = 0;
        errors.next = ctl_errors_fill_page(session, text, request->errors->first, &page);
        errors.errors = page.messages;
        errors.n_errors = page.n_rows;
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_ERRORS;
        reply.errors = &errors;
        session_reply(session, &reply, NULL, 0);
}

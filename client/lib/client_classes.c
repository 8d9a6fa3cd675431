/* The names of the dataset's classes: fetched once, page by page, and kept. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/client_clock.h"
#include "client/lib/loader.h"

/* Adds one page. The total and the next page's number come from the daemon and are not trusted: they must agree with
 * the names that it sends. */
static int add_page(struct dlc_loader *loader, const Dlp__ClassesReply *page) {
        uint64_t n = loader->n_classes + page->n_names;
        char **classes;

        if (n > page->n_classes || (page->next ? page->next != n || page->n_names == 0 : n != page->n_classes))
                return why_set(&loader->reason, -EPROTO,
                               "the daemon at %s sent class names that do not add up: %llu of %u",
                               loader->connection.path, (unsigned long long)n, page->n_classes);
        classes = realloc(loader->classes, (n + 1) * sizeof(*classes)); /* + 1: never an allocation of 0 bytes */
        if (!classes)
                return why_set(&loader->reason, -ENOMEM, "no memory for the names of %u classes", page->n_classes);
        loader->classes = classes;
        for (size_t i = 0; i < page->n_names; i++) {
                classes[loader->n_classes] = strdup(page->names[i]);
                if (!classes[loader->n_classes])
                        return why_set(&loader->reason, -ENOMEM, "no memory for the names of %u classes",
                                       page->n_classes);
                loader->n_classes++;
        }
        return 0;
}

/* Fetches the page from class `first` on. Returns 0 with the first class of the next page in *ret_next, 0 if this was
 * the last page. */
static int client_classes_ask_page(struct dlc_loader *loader, uint32_t first, uint32_t *ret_next) {
        Dlp__ClassesRequest body = DLP__CLASSES_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        body.first = first;
        request.body_case = DLP__REQUEST__BODY_CLASSES;
        request.classes = &body;
        r = dli_connection_call(&loader->connection, &request, DLI_ANSWER_TIMEOUT_MS, &loader->reason, &reply, NULL, 0);
        if (r == DLI_ASK_AGAIN)
                return -EREMOTEIO;
        if (r < 0)
                return r;
        if (reply->body_case != DLP__REPLY__BODY_CLASSES)
                r = why_set(&loader->reason, -EPROTO, "the daemon at %s answered another question",
                            loader->connection.path);
        else
                r = add_page(loader, reply->classes);
        if (r == 0)
                *ret_next = reply->classes->next;
        dlp__reply__free_unpacked(reply, NULL);
        return r;
}

void dli_classes_free(struct dlc_loader *loader) {
        for (uint64_t i = 0; i < loader->n_classes; i++)
                free(loader->classes[i]);
        free(loader->classes);
        loader->classes = NULL;
        loader->n_classes = 0;
}

/* Fetches all pages, or fails. */
static int ask_pages(struct dlc_loader *loader, void *userdata) {
        uint32_t next = 0;
        int r;

        (void)userdata;
        do
                r = client_classes_ask_page(loader, next, &next);
        while (r == 0 && next > 0);
        if (r < 0)
                dli_classes_free(loader);
        return r;
}

int64_t dlc_n_classes(struct dlc_loader *loader) {
        int r = dli_loader_enter(loader, "dlc_n_classes", loader && loader->has_classes);

        if (r == 0 && !loader->has_classes) {
                r = dli_restart_ask(loader, ask_pages, NULL);
                if (r < 0)
                        dli_report(&loader->reason, r);
                else
                        loader->has_classes = true;
        }
        return r < 0 ? r : (int64_t)loader->n_classes;
}

const char *dlc_class_name(struct dlc_loader *loader, uint64_t label) {
        if (dlc_n_classes(loader) < 0)
                return NULL;
        return label < loader->n_classes ? loader->classes[label] : NULL;
}

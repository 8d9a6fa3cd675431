/* The class names of the dataset that a connection is served from, in the order of their labels. */
#include <errno.h>
#include <string.h>

#include "daemon/ctl/handlers.h"

#define PAGE_NAMES    4096u
#define PAGE_BYTES    (DLP_PACKET_MAX - 1024u) /* the rest of the reply takes a few dozen */
#define NAME_OVERHEAD 4u                       /* tag and length */

/* Adds names from `first` on until the page is full. Returns the label after the last name. */
static uint32_t ctl_classes_fill_page(const struct source *index, uint32_t first, char **names, size_t *ret_n) {
        uint32_t n_classes = index->n_classes, label = first;
        size_t n = 0, n_bytes = 0;

        for (; label < n_classes && n < PAGE_NAMES; label++) {
                const char *name = source_class_name(index, label);

                n_bytes += strlen(name) + NAME_OVERHEAD;
                if (n_bytes > PAGE_BYTES)
                        break;
                names[n++] = (char *)(uintptr_t)name; /* the folder's name: not necessarily UTF-8 */
        }
        *ret_n = n;
        return label;
}

void handle_classes(struct session *session, const Dlp__Request *request) {
        static char *names[PAGE_NAMES]; /* main thread only */
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__ClassesReply classes = DLP__CLASSES_REPLY__INIT;
        uint32_t first = request->classes->first, end;
        const struct source *index;

        if (session->state != SESSION_ATTACHED) {
                session_refuse(session, request->id, -ENOTCONN, "classes: attach first");
                return;
        }
        index = dataset_source(session->feed->dataset->dataset);
        end = ctl_classes_fill_page(index, first, names, &classes.n_names);
        classes.n_classes = index->n_classes;
        if (classes.n_names == 0 && first < classes.n_classes) {
                session_refuse(session, request->id, -EMSGSIZE,
                               "classes: the name of a class is too long for a message");
                return;
        }
        classes.names = names;
        classes.next = end < classes.n_classes ? end : 0;
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_CLASSES;
        reply.classes = &classes;
        session_reply(session, &reply, NULL, 0);
}

/* web/web_view.h: what is known of the daemon, and the document that shows it (/status.json).
 *
 * Counters go out as the daemon counts them, since its start; whoever shows rates subtracts. So nothing has to be
 * agreed on here, and a history is a list of short texts, one for each second, that are made once. The records are
 * those of dlctl status, jobs, datasets and errors. They are only made if somebody asks for them. */
#pragma once

#include <event2/buffer.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/dlctl/glance.h"
#include "proto/frame.h"

#define VIEW_JOBS_MAX     256u
#define VIEW_DATASETS_MAX 1000u
#define VIEW_SECONDS      600u        /* of history */
#define VIEW_BYTES_MAX    (16u << 20) /* of history: with very many ranks it is shorter */

struct view;

/* `user` is shown, and must outlive the view. */
struct view *view_new(const char *user);
void view_free(struct view *view); /* takes NULL */

/* Which daemon is asked: how it was found ("given", "node", "private"; static), and its socket. */
void view_set_daemon(struct view *view, const char *found, const char *socket);

/* What the daemon has just said: status and jobs. The view takes it over. */
void view_set_state(struct view *view, struct glance *glance);

/* The same for the lists that it has just been asked for. */
void view_set_datasets(struct view *view, const struct glance *lists);
void view_set_errors(struct view *view, const struct glance *lists);

/* The daemon does not answer, because of this. NULL: it does. */
void view_set_away(struct view *view, const char *why);

/* Has it no jobs, as far as is known? */
bool view_is_idle(const struct view *view);

/* Damaged samples of all datasets, as they were last told. */
uint64_t view_errors(const struct view *view);

/* Which part of the document a reader has already. 0: none. */
struct view_known {
        uint64_t sequence; /* of the last second that it has */
        uint64_t datasets, errors;
};

/* Adds the document to `body`. */
void view_write(struct view *view, const struct view_known *known, struct evbuffer *body);

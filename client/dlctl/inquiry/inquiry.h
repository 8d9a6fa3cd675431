/* dlctl/inquiry/inquiry.h: asks the daemon without ever waiting for it: dlctl top and dlctl web look at it each second.
 *
 * One connection, one question at a time. A round is some questions in a fixed sequence, of which each may have several
 * pages. Sending cannot block, since the daemon has answered all before. The caller waits until the connection is
 * readable. Whenever the connection ends, `away` says why. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/dlctl/glance.h"
#include "client/dlctl/inquiry/inquiry_reach.h"

#define INQUIRY_FEW     64u            /* datasets are asked for each time, */
#define INQUIRY_MANY_NS 10000000000ull /* more of them that often */

struct inquiry {
        const struct context *context;
        const char *client; /* "dlctl top 0.1.0" */
        struct dli_connection connection;
        bool is_connected;
        bool is_asking;           /* a round is under way */
        bool wanted[N_QUESTIONS]; /* that are still to be asked in it, */
        enum question question;   /* and the one that is asked */
        uint64_t page;            /* of its answer */
        uint64_t asked_ns, datasets_ns;
        size_t n_datasets;
        struct glance *glance, *lists; /* as far as they have come */
        unsigned generation;           /* rises with each connection: another daemon may have counted before */
        struct why away;               /* why the daemon does not answer; "": it does, as far as is known */
};

/* For the daemon that the other commands would ask. It may be away, and come back. The texts must live as long. */
void inquiry_init(struct inquiry *inquiry, const struct context *context, const char *client);

/* Ends the connection, if there is one, and the round. */
void inquiry_close(struct inquiry *inquiry);

/* Connects, if there is no connection. Returns 1 if there is a new one; 0; a negative errno. */
int inquiry_connect(struct inquiry *inquiry, enum reach *ret_reach);

/* Would datasets be asked for, if they were wanted? Of many that is seldom. */
bool inquiry_wants_datasets(const struct inquiry *inquiry, uint64_t now_ns);

/* Begins a round, with at least one question. Returns 0; a negative errno: the connection has ended. */
int inquiry_begin(struct inquiry *inquiry, const bool wanted[N_QUESTIONS], uint64_t now_ns);

/* Has it waited too long for an answer? Then `away` says so. */
bool inquiry_is_late(struct inquiry *inquiry, uint64_t now_ns);

/* Takes in what has come, and goes on asking. Returns 1 if the round is over: then the status and the jobs are in
 * *ret_glance, datasets and errors in *ret_lists (NULL if neither was asked for), which are the caller's. 0: not yet; a
 * negative errno: the connection has ended. */
int inquiry_take(struct inquiry *inquiry, uint64_t now_ns, struct glance **ret_glance, struct glance **ret_lists);

/* dlctl/inquiry/inquiry.h: asks the daemon without ever waiting for it: dlctl top and dlctl web look at it each second.
 *
 * One connection, one question at a time. A round is some questions in a fixed sequence, of which each may have several
 * pages. Sending cannot block, since the daemon has answered all before. The caller connects, waits until the
 * connection is readable, and keeps what is answered. Whenever the connection ends, `away` says why. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/lib/connection.h"

enum question {
        ASK_STATUS,
        ASK_JOBS,
        ASK_DATASETS,
        ASK_ERRORS,
        N_QUESTIONS,
};

struct inquiry {
        struct dli_connection connection;
        bool is_connected;
        bool is_asking;           /* a round is under way */
        bool wanted[N_QUESTIONS]; /* that are still to be asked in it, */
        enum question question;   /* and the one that is asked */
        uint64_t page;            /* of its answer */
        uint64_t asked_ns;
        struct why away; /* why the daemon does not answer; "": it does, as far as is known */
};

void inquiry_init(struct inquiry *inquiry);

/* Ends the connection, if there is one, and the round. */
void inquiry_close(struct inquiry *inquiry);

/* What came of the attempt to make inquiry->connection: r < 0, and why not. */
void inquiry_connected(struct inquiry *inquiry, int r, const struct why *reason);

/* Begins a round, with at least one question. Returns 0; a negative errno: the connection has ended. */
int inquiry_begin(struct inquiry *inquiry, const bool wanted[N_QUESTIONS], uint64_t now_ns);

/* Has it waited too long for an answer? Then `away` says so. */
bool inquiry_is_late(struct inquiry *inquiry, uint64_t now_ns);

/* Takes in what has come. Returns 1 if it is an answer to inquiry->question, which is the caller's; 0: not yet; a
 * negative errno: the connection has ended. */
int inquiry_take(struct inquiry *inquiry, Dlp__Reply **ret_reply);

/* Does the answer have a page `next`? Their numbers must rise, or it would never end. */
static inline bool inquiry_has_page(const struct inquiry *inquiry, uint64_t next) {
        return next > inquiry->page;
}

/* After an answer: asks for its page `next`, if it has one, else the next question. Returns 0; 1: the round is over; a
 * negative errno: the connection has ended. */
int inquiry_proceed(struct inquiry *inquiry, uint64_t next, uint64_t now_ns);

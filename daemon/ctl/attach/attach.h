/* ctl/attach/attach.h: a rank asks for its ring.
 *
 * Its request is checked and the rank joins its job (attach.c, with the terms of attach_terms.c and the sampler of
 * attach_sampling.c); the tokenizers that it names (attach_tokenizer.c) and the ring's memory are made in the
 * background, and the ring is handed over (attach_ring.c). All else runs on the main thread. */
#pragma once

#include <stdint.h>

#include "daemon/ctl/session.h"
#include "daemon/tokenize/at_hand.h"

struct attach {
        struct session *session;
        uid_t user;
        uint64_t id; /* of the request */
        struct catalog_waiter waiter;
        Dlp__Attach *wish; /* a copy */
        const char *at;    /* how far the list of its datasets' names has been checked */
        int columns_fd;    /* memory of the sampler's columns, or what else the client sent; -1: nothing */
        struct sampling *sampling;
        struct at_hand tokenizers; /* that its pipeline names */
        struct user *owner;        /* the user who pays when one is read */
        struct feed_options options;
        struct pipeline *pipeline;
        struct feed *feed;
        void (*read)(struct attach *attach); /* what follows when a tokenizer has been read */
        struct why why;
        int result;
};

/* With all that it holds; the feed, once there is one, keeps what it needs. */
void attach_free(void *attach);

/* attach_terms.c: the wish's terms, checked one by one. What the dataset decides about them comes after, with
 * attach_settle_order(): terms that ask for the same order must be equal. Both: 0, or -EINVAL with `why`. */
int attach_read_terms(const Dlp__Attach *wish, struct job_terms *ret_terms, struct why *why);
bool attach_is_in_blocks(const Dlp__Attach *wish); /* the order of blocks, and nothing that changes it */
int attach_settle_order(struct job_terms *terms, const struct source *source, struct why *why);

/* attach.c: what was waited for elsewhere has come, and the session listens again. False: its client has left
 * meanwhile, and `attach` is freed. */
bool attach_goes_on(struct attach *attach);

/* attach_tokenizer.c: the tokenizer that was missing when the pipeline was parsed is read in the background; then
 * `done` is called, unless the client has left. An errno: then nothing has begun. */
int attach_read_tokenizer(struct attach *attach, void (*done)(struct attach *attach));

/* attach_sampling.c: attach->sampling, which makes the order of the epochs if the wish asks for more than shuffling,
 * and the terms that follow from it. attach->options.programs must be there. 0, or an errno with `why`. */
int attach_settle_sampling(struct attach *attach, const Dlp__Attach *wish, const struct source *source,
                           struct job_terms *terms, struct why *why);

/* attach_ring.c: makes the feed and its ring in the background, hands them over, and frees the attach. An errno: then
 * nothing has begun. */
int attach_make_ring(struct attach *attach);

/* attach_ring.c: sets the job's weight from the current configuration; a reload takes effect when the next rank
 * attaches. Of several datasets the heaviest one counts. */
void attach_weigh_job(struct server *server, struct job *job);

/* attach_ring.c: leaves the job. Before the refusal is sent: a client that reads the refusal may try again at once. */
void attach_leave_job(struct session *session);

/* A tokenizer that the pipeline of an attach names: a client chooses the file, which may be large, hostile, or on a
 * disk that hangs. So it is read in the background, as an errand of the user. */
#include "daemon/ctl/attach/attach.h"
#include "daemon/ctl/users/user_quota.h"
#include "daemon/tokenize/tokenizers.h"

static void read_work(void *userdata) {
        struct attach *attach = userdata;
        struct session *session = attach->session;
        struct budget *budget = attach->options.budget;
        struct tokenizer *tokenizer = NULL;

        errand_begin(&attach->owner->errands, &session->is_unwanted);
        attach->result = tokenizers_read(session->server->options.tokenizers, attach->tokenizers.missing, attach->owner,
                                         budget ? budget : session->server->options.budget, &tokenizer, &attach->why);
        errand_end();
        at_hand_put(&attach->tokenizers, attach->result, tokenizer, &attach->why);
}

static void read_done(void *userdata) {
        struct attach *attach = userdata;
        struct session *session = attach->session;
        struct server *server = session->server;

        if (!attach_goes_on(attach))
                return;
        session_asks(session);
        attach->read(attach);
        session_asked(server);
}

int attach_read_tokenizer(struct attach *attach, void (*done)(struct attach *attach)) {
        struct session *session = attach->session;
        int r = quota_user(session, &attach->owner, &attach->options.budget);

        attach->read = done;
        if (r == 0)
                r = background_run(session->server->options.background, read_work, read_done, attach);
        if (r < 0)
                return r;
        session_listen(session, false);
        session->state = SESSION_ATTACHING;
        return 0;
}

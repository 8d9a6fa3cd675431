/* The ring of an attach: its memory is made in the background, and it is handed over with what the client has to know.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/work/closer.h"
#include "daemon/ctl/attach/attach.h"
#include "daemon/data/doubts.h"
#include "daemon/pipeline/desk/desk.h"

static void attach_work(void *userdata) {
        struct attach *attach = userdata;

        attach->result = pipeline_make_feed(attach->pipeline, &attach->options, &attach->feed, &attach->why);
}

static void attach_touch(void *userdata) {
        struct attach *attach = userdata;

        pipeline_touch_feed(attach->pipeline, attach->feed);
}

/* 64 parts of 128 bytes of name and 64 of digest: far below a packet. */
struct told_parts {
        Dlp__Part messages[DLP_PARTS_MAX], *pointers[DLP_PARTS_MAX];
};

static void tell_parts(Dlp__Attached *attached, const struct source *source, struct told_parts *parts) {
        for (uint32_t k = 0; k < source->n_parts; k++) {
                Dlp__Part *message = &parts->messages[k];

                dlp__part__init(message);
                message->name = (char *)(uintptr_t)source->parts[k].name;
                message->digest = (char *)(uintptr_t)source->parts[k].source->digest;
                message->n_samples = source->parts[k].source->n_samples;
                parts->pointers[k] = message;
        }
        attached->parts = parts->pointers;
        attached->n_parts = source->n_parts;
}

struct told_forms {
        Dlp__LeftForm messages[DLP_LEFT_FORMS_MAX], *pointers[DLP_LEFT_FORMS_MAX];
};

/* What the client has to do itself. */
static void tell_forms(Dlp__Attached *attached, const struct program *program, struct told_forms *forms) {
        for (uint32_t i = 0; i < program_n_fields(program) && attached->n_left_forms < DLP_LEFT_FORMS_MAX; i++) {
                Dlp__LeftForm *message = &forms->messages[attached->n_left_forms];
                struct picture_form form;

                if (!codec_left_form(program_codec(program, i), &form))
                        continue;
                dlp__left_form__init(message);
                message->tensor = (char *)(uintptr_t)codec_name(program_codec(program, i));
                message->dtype = form.dtype;
                message->n_channels = form.n_channels;
                message->channels_first = form.channels_first;
                message->table.data = (uint8_t *)(uintptr_t)form.table;
                message->table.len = form.table_bytes;
                message->operations_format = form.operations_at > 0 ? DLP_LEFT_OPERATIONS_FORMAT : 0;
                message->operations_at = form.operations_at;
                forms->pointers[attached->n_left_forms++] = message;
        }
        attached->left_forms = forms->pointers;
}

static bool decodes(const struct feed *feed) {
        const struct program *program = programs_first(feed->programs);

        for (uint32_t i = 0; i < program_n_fields(program); i++)
                if (codec_decodes(program_codec(program, i)))
                        return true;
        return false;
}

/* A trainer learns at its beginning of files that will end it or be left out. One rank tells it. */
static void tell_doubt(const struct feed *feed, struct why *ret_text) {
        const struct catalog_dataset *dataset = feed->dataset;
        bool ends = feed->job->terms.on_error == ON_ERROR_FAIL;

        ret_text->text[0] = '\0';
        if (feed->rank > 0 || !decodes(feed))
                return;
        for (uint32_t i = 0; i < dataset->n_parts && !dataset->doubt.text[0]; i++)
                if (dataset->parts[i]->doubt.text[0])
                        dataset = dataset->parts[i];
        if (dataset->doubt.text[0] && !doubts_are_settled(dataset->doubt.text, feed->job->terms.pipeline))
                why_set(ret_text, 0, "dataset %s: %s%s", dataset->name, dataset->doubt.text,
                        ends && doubts_end_jobs(dataset->doubt.text)
                                ? "; the first one that is needed ends the job, unless on_error says otherwise"
                                : "");
}

static void attach_ring_hand_over(struct session *session, uint64_t id, struct feed *feed) {
        struct ring *ring = feed->ring;
        int fds[] = { ring->control_segment.lent_fd, ring->payload_segment.lent_fd, feed->release_fd };
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__Attached attached = DLP__ATTACHED__INIT;
        struct told_parts parts;
        struct told_forms forms;
        struct why doubt;

        attached.n_samples = feed->n_samples;
        attached.rank_samples = feed->whole.n_samples;
        attached.rank_batches = feed->whole.n_batches;
        attached.dataset_digest = feed->job->terms.digest;
        attached.pipeline = feed->job->terms.pipeline;
        attached.n_slots = ring->n_slots;
        attached.control_bytes = ring->control_segment.n_bytes;
        attached.payload_bytes = ring->payload_segment.n_bytes;
        attached.stream = 0;
        attached.memory = (char *)(uintptr_t)ring->payload_segment.obtained;
        attached.job = feed->job->name;
        attached.dataset = feed->job->terms.dataset;
        tell_parts(&attached, dataset_source(feed->dataset->dataset), &parts);
        tell_forms(&attached, programs_first(feed->programs), &forms);
        attached.order_is_made = feed->job->terms.is_made;
        attached.deals_batches = feed->job->terms.deals_batches;
        attached.uses_batch_size = feed->job->terms.uses_batch_size;
        attached.has_units = feed->job->terms.has_units;
        attached.sampler = feed->job->terms.sampler;
        if (feed->job->sampling)
                attached.blocks_digest = feed->job->sampling->blocks_digest;
        tell_doubt(feed, &doubt);
        attached.doubt = doubt.text;
        attached.answers_waits = true;
        attached.ticket = feed->desk ? feed->desk->ticket : (char *)(uintptr_t)protobuf_c_empty_string;
        reply.id = id;
        reply.body_case = DLP__REPLY__BODY_ATTACHED;
        reply.attached = &attached;
        session_reply(session, &reply, fds, 3);
        ring_was_sent(ring);
}

void attach_weigh_job(struct server *server, struct job *job) {
        struct catalog *catalog = server->options.catalog;
        char name[DLP_DATASET_MAX];
        const char *at = NULL;
        uint32_t weight = 0;

        while (catalog_next_name(catalog, job->terms.dataset, &at, name)) {
                const struct catalog_entry *entry = catalog_find(catalog, name, NULL);

                if (entry && entry->weight > weight)
                        weight = entry->weight;
        }
        if (weight > 0)
                atomic_store_explicit(&job->share.weight, weight, memory_order_relaxed);
}

void attach_leave_job(struct session *session) {
        job_leave(session->job, session->member);
        session->job = NULL;
        session->member = NULL;
}

static void attach_done(void *userdata) {
        struct attach *attach = userdata;
        struct session *session = attach->session;
        struct background *background = session->server->options.background;
        struct feed *feed = attach->feed;

        session->state = SESSION_OPEN;
        if (session->closed) { /* the client left while its memory was being made */
                session_give_back(session);
                feed_free(feed);
        } else if (session->server->draining) {
                session_close(session, "the daemon is stopping");
                feed_free(feed);
        } else if (attach->result < 0) {
                attach_leave_job(session);
                session_listen(session, true);
                session_refuse(session, attach->id, attach->result, attach->why.text);
        } else {
                session->state = SESSION_ATTACHED;
                closer_refuse_descriptors(session->fd);
                session->feed = feed;
                pipeline_add(attach->pipeline, feed);
                session_listen(session, true);
                log_user_info(session->peer.uid, "ctl",
                              "rank attached job=%s rank=%u/%u dataset=%s pid=%d user=%s memory=%s", session->job->name,
                              feed->rank, session->job->terms.world, feed->dataset->name, session->peer.pid,
                              session_user(session), feed->ring->payload_segment.obtained);
                attach_ring_hand_over(
                        session, attach->id,
                        feed); /* may close the session; the feed stays until its memory has been touched */
                if (background_run(background, attach_touch, attach_free, attach) == 0)
                        return;
                pipeline_skip_touching(attach->pipeline, feed);
        }
        attach_free(attach);
}

int attach_make_ring(struct attach *attach) {
        return background_run(attach->session->server->options.background, attach_work, attach_done, attach);
}

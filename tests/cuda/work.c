/* cuda/work.c: a stream is a thread with a queue.
 *
 * The device executes what is in a stream in order and when it likes. Here each piece of work waits for a random time,
 * so that a client which takes it for done too early is wrong more often than on a fast machine. */
#include <unistd.h>

#include "tests/cuda/inside.h"

struct work {
        struct work *next;
        work_run run; /* NULL: only a place in the order */
        void *argument;
        uint32_t n_after;
        struct moment after[]; /* it does not begin before these have passed */
};

static struct stream *streams; /* whose threads run */

/* The special streams of a thread: for which context it has one. */
static _Thread_local struct stream *per_thread;

bool moment_passed(struct moment moment) {
        return !moment.stream || moment.stream->n_done >= moment.sequence;
}

void moment_wait(struct moment moment) {
        while (!moment_passed(moment))
                pthread_cond_wait(&the_condition, &the_lock);
}

void stream_pause(struct stream *stream, uint64_t longest_us) {
        /* xorshift64 */
        stream->random ^= stream->random << 13;
        stream->random ^= stream->random >> 7;
        stream->random ^= stream->random << 17;
        if (longest_us > 0)
                usleep((useconds_t)(stream->random % (longest_us + 1)));
}

/* ---- the thread ------------------------------------------------------------------------------------------------- */

static void execute(struct stream *stream, struct work *work) {
        uint64_t delay_us = the.settings.delay_us;
        bool executes;

        for (uint32_t i = 0; i < work->n_after; i++)
                moment_wait(work->after[i]);
        pthread_mutex_unlock(&the_lock);
        stream_pause(stream, delay_us);
        pthread_mutex_lock(&the_lock);
        executes = !the.sticky && !the.ended;
        pthread_mutex_unlock(&the_lock);
        if (work->run)
                work->run(stream, work->argument, executes);
        free(work->argument);
        pthread_mutex_lock(&the_lock);
        stream->n_done++;
        pthread_cond_broadcast(&the_condition);
}

static void unlink_stream(struct stream *stream) {
        struct stream **at = &streams;

        while (*at != stream)
                at = &(*at)->next;
        *at = stream->next;
}

static void *stream_thread(void *argument) {
        struct stream *stream = argument;

        pthread_mutex_lock(&the_lock);
        while (stream->first || !stream->closing) {
                struct work *work = stream->first;

                if (!work) {
                        pthread_cond_wait(&the_condition, &the_lock);
                        continue;
                }
                stream->first = work->next;
                if (!stream->first)
                        stream->end = &stream->first;
                execute(stream, work);
                free(work);
        }
        unlink_stream(stream);
        pthread_cond_broadcast(&the_condition);
        pthread_mutex_unlock(&the_lock);
        return NULL;
}

struct stream *stream_new(struct context *context, bool blocking) {
        struct stream *stream = object_new(STREAM, sizeof(*stream), context);
        pthread_attr_t detached;
        int r;

        stream->blocking = blocking;
        stream->end = &stream->first;
        stream->random = (the.settings.seed + (uint64_t)stream->object.handle) * 0x9e3779b97f4a7c15ull | 1;
        stream->next = streams;
        streams = stream;
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        r = pthread_create(&stream->thread, &detached, stream_thread, stream);
        pthread_attr_destroy(&detached);
        if (r != 0)
                abort();
        return stream;
}

/* ---- queueing --------------------------------------------------------------------------------------------------- */

/* Work in the legacy stream waits for what is in the blocking streams of its context, and their later work for it. */
static bool waits_for(const struct stream *stream, const struct stream *other) {
        const struct stream *legacy = stream->object.context->legacy;

        if (other == stream || other->object.context != stream->object.context)
                return false;
        return (stream == legacy && other->blocking) || (stream->blocking && other == legacy);
}

struct moment stream_push(struct stream *stream, work_run run, void *argument, struct moment after) {
        struct work *work;
        uint32_t n = 1;

        for (struct stream *other = streams; other; other = other->next)
                n += waits_for(stream, other);
        work = must_alloc(sizeof(*work) + n * sizeof(work->after[0]));
        work->run = run;
        work->argument = argument;
        work->after[work->n_after++] = after;
        for (struct stream *other = streams; other; other = other->next)
                if (waits_for(stream, other))
                        work->after[work->n_after++] = (struct moment){ other, other->n_queued };
        *stream->end = work;
        stream->end = &work->next;
        stream->n_queued++;
        pthread_cond_broadcast(&the_condition);
        return (struct moment){ stream, stream->n_queued };
}

static struct stream *hidden_stream(struct context *context, bool blocking) {
        struct stream *stream = stream_new(context, blocking);

        object_hide(&stream->object);
        return stream;
}

struct stream *stream_find(const struct entered *entered, void *handle) {
        struct context *context = entered->context;

        if (handle == CUDA_STREAM_PER_THREAD) {
                if (!per_thread || !per_thread->object.alive || per_thread->object.context != context)
                        per_thread = hidden_stream(context, true);
                return per_thread;
        }
        if (handle && handle != CUDA_STREAM_LEGACY)
                return object_find(entered->name, handle, STREAM);
        if (!context->legacy)
                context->legacy = hidden_stream(context, false);
        return context->legacy;
}

/* ---- waiting for all of them ------------------------------------------------------------------------------------ */

void context_drain(struct context *context) {
        struct moment *moments;
        uint32_t n = 0;

        for (struct stream *stream = streams; stream; stream = stream->next)
                n++;
        moments = must_alloc((n + 1) * sizeof(moments[0]));
        n = 0;
        for (struct stream *stream = streams; stream; stream = stream->next)
                if (!context || stream->object.context == context)
                        moments[n++] = (struct moment){ stream, stream->n_queued };
        for (uint32_t i = 0; i < n; i++)
                moment_wait(moments[i]);
        free(moments);
}

static bool any_runs(const struct context *context) {
        for (struct stream *stream = streams; stream; stream = stream->next)
                if (!context || stream->object.context == context)
                        return true;
        return false;
}

void streams_end(struct context *context) {
        for (struct stream *stream = streams; stream; stream = stream->next)
                if (!context || stream->object.context == context)
                        stream->closing = true;
        pthread_cond_broadcast(&the_condition);
        while (any_runs(context))
                pthread_cond_wait(&the_condition, &the_lock);
}

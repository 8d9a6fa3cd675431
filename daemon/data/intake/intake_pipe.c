/* A pipe: what comes out of it goes into files of the spool, which are shards like others.
 *
 * A file is cut between two samples, so each of these shards is whole: the last sample that was seen may go on, and
 * moves to the next file. The first cut is made after a number of bytes and not of seconds, because the first shard
 * says what the stream is, also to a run that resumes after the same data were sent again. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/disk.h"
#include "daemon/data/intake/intake_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define WINDOW_BYTES (256u << 10)
#define FIRST_BYTES  (1u << 20)   /* of the first shard, unless the pipe ends before */
#define SHARD_BYTES  (64u << 20)  /* of another one, if data come without a pause */
#define PAUSE_MS     100          /* without data: then what is there becomes a shard */
#define TURN_NS      500000000ull /* after which a caller looks up */

#define IS_OVER 1 /* of read_some(): nobody writes to the pipe any more */
#define IS_IDLE 2

/* ---- files of the spool ---------------------------------------------------------------------------------------- */

static int pipe_begin_file(struct intake *intake, struct why *why) {
        struct intake_pipe *pipe = &intake->pipe;
        int r = 0;

        if (!intake->spool.folder)
                r = spool_open(&intake->spool, intake->spool_path, intake->spool_limit, why);
        if (r == 0)
                r = spool_new_file(&intake->spool, pipe->path, &pipe->file, why);
        pipe->n_bytes = pipe->n_walked = 0;
        pipe->n_wanted = intake->samples.pieces ? SHARD_BYTES : FIRST_BYTES;
        return r;
}

static int pipe_append(struct intake *intake, const uint8_t *bytes, size_t n, struct why *why) {
        struct intake_pipe *pipe = &intake->pipe;
        int r = disk_write_at(pipe->file, bytes, n, pipe->n_bytes);

        if (r < 0)
                return why_errno(why, r, "the spool cannot be written");
        pipe->n_bytes += n;
        intake->spool.used_bytes += n;
        return 0;
}

/* The bytes from `split_at` on, which begin with a sample's first header, move to a new file. */
static int pipe_split(struct intake *intake, struct why *why) {
        struct intake_pipe *pipe = &intake->pipe;
        _cleanup_(freep) uint8_t *window = malloc(WINDOW_BYTES);
        _cleanup_(closep) int old = pipe->file;
        uint64_t at = pipe->split_at, end = pipe->n_bytes;
        int r = window ? 0 : why_errno(why, -ENOMEM, "the spool");

        pipe->file = -1;
        if (r == 0)
                r = pipe_begin_file(intake, why);
        for (size_t n; r == 0 && at < end; at += n) {
                n = end - at < WINDOW_BYTES ? (size_t)(end - at) : WINDOW_BYTES;
                r = disk_read_at(old, window, n, at);
                if (r < 0)
                        why_errno(why, r, "the spool cannot be read");
                else
                        r = pipe_append(intake, window, n, why);
        }
        if (r < 0) { /* it is tried again */
                if (pipe->file >= 0) {
                        spool_drop_last(&intake->spool, pipe->n_bytes);
                        closep(&pipe->file);
                }
                pipe->file = take_fd(&old);
                pipe->n_bytes = end;
                return r;
        }
        if (ftruncate(old, (off_t)pipe->split_at) == 0)
                intake->spool.used_bytes -= end - pipe->split_at;
        pipe->split_at = 0;
        return 0;
}

/* ---- the pipe -------------------------------------------------------------------------------------------------- */

static uint64_t pipe_room_of(const struct spool *spool) {
        return spool->used_bytes < spool->limit_bytes ? spool->limit_bytes - spool->used_bytes : 0;
}

static int write_held(struct intake *intake, struct why *why) {
        struct intake_pipe *pipe = &intake->pipe;
        int r = pipe_append(intake, pipe->window, pipe->n_held, why);

        if (r == 0)
                pipe->n_held = 0;
        return r;
}

/* Brings what is there into the file, as far as the file and the spool want it. Returns 0, IS_OVER, IS_IDLE or an
 * errno. */
static int read_some(struct intake *intake, struct why *why) {
        struct intake_pipe *pipe = &intake->pipe;
        struct pollfd waited = { .fd = pipe->fd, .events = POLLIN };
        uint64_t n = pipe->n_wanted - pipe->n_bytes, n_room = pipe_room_of(&intake->spool);
        ssize_t n_read;

        if (pipe->n_held > 0)
                return write_held(intake, why);
        if (n_room == 0)
                return why_set(why, -ENOSPC, "spool_limit, %llu bytes, is used up; raise it, and begin the stream anew",
                               (unsigned long long)intake->spool.limit_bytes);
        n = n < n_room ? n : n_room;
        /* Without POLLHUP there was no writer yet: read() would say that the pipe has ended. */
        if (poll(&waited, 1, PAUSE_MS) <= 0 || (waited.revents & (POLLIN | POLLHUP)) == 0)
                return IS_IDLE;
        n_read = read(pipe->fd, pipe->window, n < WINDOW_BYTES ? (size_t)n : WINDOW_BYTES);
        if (n_read == 0)
                return IS_OVER;
        if (n_read < 0)
                return errno == EAGAIN || errno == EINTR ? IS_IDLE : why_errno(why, -errno, "the pipe cannot be read");
        pipe->n_held = (size_t)n_read;
        return write_held(intake, why);
}

static int open_pipe(struct intake *intake, const char *name, struct why *why) {
        struct intake_pipe *pipe = &intake->pipe;
        int r = 0;

        if (!pipe->window)
                pipe->window = malloc(WINDOW_BYTES);
        if (!pipe->window)
                return why_errno(why, -ENOMEM, "a pipe");
        if (pipe->file < 0)
                r = pipe_begin_file(intake, why);
        if (r < 0)
                return r;
        pipe->fd = beneath_open(intake->root_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        return pipe->fd < 0 ? why_errno(why, -errno, "%s", name) : 0;
}

/* ---- shards ---------------------------------------------------------------------------------------------------- */

/* What an earlier part of the pipe had is in another file, and its names are not kept. */
static void tell_passed_over(struct intake *intake, const char *name, const struct haul *haul) {
        struct why why;

        if (!haul->passed_over[0])
                return;
        why_set(&why, 0,
                "%s: %s, which is not among the samples around it: an earlier part of a pipe cannot be linked to, and "
                "its sample lacks it; write the file in place of the link (tar --dereference)",
                name, haul->passed_over);
        intake_trouble(intake, &why);
}

/* Makes a shard of the whole samples in the file. `is_end`: there will be no more bytes, so what is not whole is
 * damage. Returns INTAKE_TAKEN, INTAKE_WAITS if there is no whole sample yet, or an errno. */
static int pipe_cut(struct intake *intake, const char *name, bool is_end, struct why *why) {
        _cleanup_(haul_fini) struct haul haul = { 0 };
        struct intake_pipe *pipe = &intake->pipe;
        bool is_first = !intake->samples.pieces, is_whole;
        struct stat status;
        int r = fstat(pipe->file, &status) < 0 ? why_errno(why, -errno, "the spool") : 0;

        if (r == 0)
                r = intake_walk(intake, pipe->file, name, &status, is_first, &haul, why);
        is_whole = !haul.is_cut || is_end; /* the archive's own end, or damage, after which nothing can be found */
        if (r == 0 && !is_whole) {
                haul.damage.text[0] = '\0';
                r = haul.n_samples == 0 ? INTAKE_WAITS : 0;
        }
        if (r == 0)
                r = intake_take_walked(intake, name, pipe->path, &status, &haul, why);
        if (!intake->samples.pieces)
                intake->n_fields = 0;
        if (r == INTAKE_TAKEN && !is_first)
                tell_passed_over(intake, name, &haul);
        if (r == INTAKE_TAKEN && is_whole)
                pipe->has_end = true;
        else if (r == INTAKE_TAKEN)
                pipe->split_at = haul.last_begin;
        if (r == INTAKE_WAITS)
                pipe->n_walked = pipe->n_bytes;
        return r;
}

/* After the archive's end: what is still written must be read, or the writer would fail. */
static int pipe_drain(struct intake *intake, const char *name) {
        struct intake_pipe *pipe = &intake->pipe;
        struct pollfd waited = { .fd = pipe->fd, .events = POLLIN };
        struct why why;
        ssize_t n;

        if (poll(&waited, 1, PAUSE_MS) <= 0)
                return INTAKE_WAITS;
        n = read(pipe->fd, pipe->window, WINDOW_BYTES);
        if (n < 0)
                return INTAKE_WAITS;
        for (ssize_t i = 0; i < n; i++)
                pipe->has_more |= pipe->window[i] != 0;
        if (n > 0)
                return 0;
        if (pipe->has_more) {
                why_set(&why, 0, "%s: what came after the end of the archive, or after its damage, is left out", name);
                intake_trouble(intake, &why);
        }
        return INTAKE_OVER;
}

/* One step: 0 if there may be more to do at once, or as intake_next(). */
static int pipe_step(struct intake *intake, const char *name, struct why *why) {
        struct intake_pipe *pipe = &intake->pipe;
        bool is_first = !intake->samples.pieces;
        int r = 0;

        if (pipe->has_end)
                return pipe_drain(intake, name);
        if (pipe->fd < 0)
                r = open_pipe(intake, name, why);
        else if (pipe->split_at > 0)
                r = pipe_split(intake, why);
        if (r == 0 && !pipe->is_over && pipe->n_bytes < pipe->n_wanted)
                r = read_some(intake, why);
        if (r < 0)
                return r;
        pipe->is_over |= r == IS_OVER;
        if (pipe->is_over || pipe->n_bytes >= pipe->n_wanted ||
            (r == IS_IDLE && !is_first && pipe->n_bytes > pipe->n_walked)) {
                r = pipe_cut(intake, name, pipe->is_over, why);
                if (r == INTAKE_WAITS && pipe->n_bytes >= pipe->n_wanted) {
                        pipe->n_wanted *= 2; /* a sample longer than a shard */
                        return 0;
                }
                return r;
        }
        if (r != IS_IDLE)
                return 0;
        intake_wait_for(intake, "waits for data in the pipe %s, %llu bytes so far%s", name,
                        (unsigned long long)intake->spool.used_bytes,
                        is_first ? "; the first shard is whole after 1 MiB, or when the pipe ends" : "");
        return INTAKE_WAITS;
}

int intake_pipe_next(struct intake *intake, struct why *why) {
        const char *name = intake->names[0];
        uint64_t until_ns = clock_now_ns() + TURN_NS;
        int r = 0;

        while (r == 0 && clock_now_ns() < until_ns && !atomic_load_explicit(intake->stopped, memory_order_relaxed))
                r = pipe_step(intake, name, why);
        if (r < 0 && intake->samples.pieces) {
                intake_wait_for(intake, "waits: %s: %s", name, why->text);
                return INTAKE_WAITS;
        }
        return r == 0 ? INTAKE_WAITS : r;
}

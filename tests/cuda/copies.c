/* cuda/copies.c: copies and fills, which touch memory in pieces when they are executed. */
#include <inttypes.h>
#include <string.h>

#include "tests/cuda/inside.h"

#define N_PIECES        8            /* of a copy, at least, */
#define PIECE_MIN_BYTES 4096ull      /* unless it is small, */
#define PIECE_MAX_BYTES (1ull << 20) /* and more if it is large */

enum copy_kind {
        TO_DEVICE,
        TO_HOST,
        ON_DEVICE,
        FILL
};

struct copy {
        enum copy_kind kind;
        const char *call;
        uint64_t to, from, n_bytes;
        uint8_t value;         /* FILL */
        void *staged;          /* freed when done */
        struct pinned *pinned; /* that it touches; told when done */
        struct block *busy[2]; /* device memory that it touches now */
};

/* ---- executing ----------------------------------------------------------------------------------------------------
 */

/* Takes hold of device memory, so that it is not freed within a piece. An address of pinned memory is fine too. */
static bool hold(struct block **busy, uint64_t address, uint64_t n_bytes) {
        if (!in_arena(address))
                return true;
        *busy = block_holding(address, n_bytes);
        if (*busy)
                (*busy)->n_busy++;
        return *busy != NULL;
}

/* Device memory may have been freed since the copy was queued: then the device would report an illegal address, and the
 * context is lost. */
static bool hold_both(struct copy *copy) {
        bool held;

        pthread_mutex_lock(&the_lock);
        held = hold(&copy->busy[0], copy->to, copy->n_bytes) &&
               (copy->kind == FILL || hold(&copy->busy[1], copy->from, copy->n_bytes));
        if (!held) {
                violation("%s: device memory was freed before the work that uses it was executed", copy->call);
                the.sticky = true;
        }
        pthread_mutex_unlock(&the_lock);
        return held;
}

static void let_go(struct copy *copy, bool moved) {
        uint64_t *const BYTES[] = { &the.counts.bytes_to_device, &the.counts.bytes_to_host, &the.counts.bytes_on_device,
                                    &the.counts.bytes_on_device };

        pthread_mutex_lock(&the_lock);
        for (uint32_t i = 0; i < ARRAY_SIZE(copy->busy); i++)
                if (copy->busy[i])
                        copy->busy[i]->n_busy--;
        if (copy->pinned)
                copy->pinned->n_queued--;
        if (moved)
                *BYTES[copy->kind] += copy->n_bytes;
        pthread_cond_broadcast(&the_condition);
        pthread_mutex_unlock(&the_lock);
}

/* Device memory is touched directly, so that the sanitizers see who touches it without being ordered. */
static bool move_piece(struct copy *copy, uint64_t at, uint64_t n, uint8_t *piece) {
        if (copy->kind == FILL)
                memset(piece, copy->value, n);
        else if (in_arena(copy->from))
                memcpy(piece, (const void *)(copy->from + at), n);
        else if (!host_read(piece, copy->from + at, n))
                return false;
        if (!in_arena(copy->to))
                return host_write(copy->to + at, piece, n);
        memcpy((void *)(copy->to + at), piece, n);
        return true;
}

static bool move(struct stream *stream, struct copy *copy) {
        _cleanup_(freep) uint8_t *piece = NULL;
        uint64_t n_piece = copy->n_bytes / N_PIECES;

        if (n_piece < PIECE_MIN_BYTES)
                n_piece = PIECE_MIN_BYTES;
        if (n_piece > PIECE_MAX_BYTES)
                n_piece = PIECE_MAX_BYTES;
        piece = must_alloc(n_piece);
        for (uint64_t at = 0; at < copy->n_bytes; at += n_piece) {
                uint64_t n = copy->n_bytes - at < n_piece ? copy->n_bytes - at : n_piece;

                if (at > 0)
                        stream_pause(stream, the.settings.delay_us / 16);
                if (move_piece(copy, at, n, piece))
                        continue;
                pthread_mutex_lock(&the_lock);
                violation("%s: the memory of the process at %#" PRIx64 " is not mapped", copy->call,
                          (copy->kind == TO_HOST ? copy->to : copy->from) + at);
                pthread_mutex_unlock(&the_lock);
                return false;
        }
        return true;
}

static void run_copy(struct stream *stream, void *argument, bool executes) {
        struct copy *copy = argument;
        bool moved = executes && hold_both(copy) && move(stream, copy);

        let_go(copy, moved);
        free(copy->staged);
}

/* ---- queueing -----------------------------------------------------------------------------------------------------
 */

static bool device_side(const struct entered *entered, uint64_t address, uint64_t n_bytes) {
        const struct block *block = block_holding(address, n_bytes);
        bool overlaps;

        if (block ? !block->freeing : pinned_holding(address, n_bytes, &overlaps) != NULL)
                return true;
        violation("%s: %" PRIu64 " bytes at %#" PRIx64 " do not lie within one allocation", entered->name, n_bytes,
                  address);
        return false;
}

/* Memory of the process is either wholly within one registration, or wholly outside of all. */
static bool host_side(const struct entered *entered, uint64_t address, uint64_t n_bytes, bool writes,
                      struct pinned **ret_pinned) {
        bool overlaps;
        struct pinned *pinned = pinned_holding(address, n_bytes, &overlaps);

        if (in_arena(address)) {
                violation("%s: %#" PRIx64 " is device memory, not memory of the process", entered->name, address);
                return false;
        }
        *ret_pinned = pinned;
        return pinned ? !(writes && pinned->read_only) : !overlaps;
}

static struct moment push(struct stream *stream, struct copy copy) {
        struct copy *argument = must_alloc(sizeof(*argument));

        *argument = copy;
        if (copy.pinned)
                copy.pinned->n_queued++;
        return stream_push(stream, run_copy, argument, (struct moment){});
}

/* Registered memory is read when the device comes to it. Any other is staged: read before the call returns, by an
 * ordinary copy, which the sanitizers watch. */
static int to_device(const struct entered *entered, uint64_t to, const void *from, size_t n_bytes, void *handle,
                     struct moment *ret_moment) {
        struct stream *stream = stream_find(entered, handle);
        struct copy copy = {
                .kind = TO_DEVICE, .call = entered->name, .to = to, .from = (uint64_t)from, .n_bytes = n_bytes
        };

        if (!stream)
                return CUDA_ERROR_INVALID_HANDLE;
        if (n_bytes == 0)
                return CUDA_SUCCESS;
        if (!device_side(entered, to, n_bytes) || !host_side(entered, copy.from, n_bytes, false, &copy.pinned))
                return CUDA_ERROR_INVALID_VALUE;
        if (!copy.pinned) {
                copy.staged = must_alloc(n_bytes);
                memcpy(copy.staged, from, n_bytes);
                copy.from = (uint64_t)copy.staged;
        }
        ++*(copy.pinned ? &the.counts.n_copies_late : &the.counts.n_copies_staged);
        *ret_moment = push(stream, copy);
        return CUDA_SUCCESS;
}

/* A copy to memory that is not registered returns when it is done. */
static int to_host(const struct entered *entered, void *to, uint64_t from, size_t n_bytes, void *handle,
                   struct moment *ret_moment) {
        struct stream *stream = stream_find(entered, handle);
        struct copy copy = {
                .kind = TO_HOST, .call = entered->name, .to = (uint64_t)to, .from = from, .n_bytes = n_bytes
        };
        _cleanup_(freep) void *staged = NULL;

        if (!stream)
                return CUDA_ERROR_INVALID_HANDLE;
        if (n_bytes == 0)
                return CUDA_SUCCESS;
        if (!device_side(entered, from, n_bytes) || !host_side(entered, copy.to, n_bytes, true, &copy.pinned))
                return CUDA_ERROR_INVALID_VALUE;
        ++*(copy.pinned ? &the.counts.n_copies_late : &the.counts.n_copies_staged);
        if (copy.pinned) {
                *ret_moment = push(stream, copy);
                return CUDA_SUCCESS;
        }
        staged = must_alloc(n_bytes);
        copy.to = (uint64_t)staged;
        moment_wait(push(stream, copy));
        if (call_settled() == CUDA_SUCCESS)
                memcpy(to, staged, n_bytes);
        return call_settled();
}

/* ---- the calls ----------------------------------------------------------------------------------------------------
 */

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n_bytes, void *stream) {
        ENTER(cuMemcpyHtoDAsync);
        struct moment moment;

        return to_device(&entered, to, from, n_bytes, stream, &moment);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n_bytes, void *stream) {
        ENTER(cuMemcpyDtoHAsync);
        struct moment moment;

        return to_host(&entered, to, from, n_bytes, stream, &moment);
}

/* Those that are not "Async" are in the order of the legacy stream, and are waited for. */
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n_bytes) {
        ENTER(cuMemcpyHtoD);
        struct moment moment = {};
        int r = to_device(&entered, to, from, n_bytes, CUDA_STREAM_LEGACY, &moment);

        if (r != CUDA_SUCCESS)
                return r;
        moment_wait(moment);
        return call_settled();
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n_bytes) {
        ENTER(cuMemcpyDtoH);
        struct moment moment = {};
        int r = to_host(&entered, to, from, n_bytes, CUDA_STREAM_LEGACY, &moment);

        if (r != CUDA_SUCCESS)
                return r;
        moment_wait(moment);
        return call_settled();
}

static int on_device(const struct entered *entered, void *handle, struct copy copy) {
        struct stream *stream = stream_find(entered, handle);

        if (!stream)
                return CUDA_ERROR_INVALID_HANDLE;
        if (copy.n_bytes == 0)
                return CUDA_SUCCESS;
        if (!device_side(entered, copy.to, copy.n_bytes) ||
            (copy.kind != FILL && !device_side(entered, copy.from, copy.n_bytes)))
                return CUDA_ERROR_INVALID_VALUE;
        copy.call = entered->name;
        push(stream, copy);
        return CUDA_SUCCESS;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n_bytes, void *stream) {
        ENTER(cuMemcpyDtoDAsync);

        return on_device(&entered, stream,
                         (struct copy){ .kind = ON_DEVICE, .to = to, .from = from, .n_bytes = n_bytes });
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n_bytes, void *stream) {
        ENTER(cuMemsetD8Async);

        return on_device(&entered, stream, (struct copy){ .kind = FILL, .to = to, .value = value, .n_bytes = n_bytes });
}

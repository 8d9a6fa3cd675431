#include "daemon/data/doubts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/data/looks_like.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/shorten.h"

#define HEAD_BYTES  512u  /* enough for all that looks_like.h knows */
#define CLOCK_EVERY 1024u /* samples between two looks at the clock */
#define NAME_SHOWN  100   /* bytes */

/* Of one kind of doubt: how many, and the first. */
struct kind {
        uint64_t n, first;
};

struct doubting {
        const struct dataset *dataset;
        const struct source *source;
        uint64_t end_ns;
        const atomic_bool *cancel;
        _Atomic uint64_t *sample; /* whose file is being read */
        uint64_t n_heads;         /* files whose first bytes were read */
        struct kind empty, not_files, odd, unreadable, deep, deeper;
        char begins[3 * 8 + 1]; /* of the first odd one */
        int error;              /* of the first unreadable one */
};

static void note(struct kind *kind, uint64_t sample) {
        if (kind->n++ == 0)
                kind->first = sample;
}

static bool is_over(const struct doubting *doubting) {
        return (doubting->cancel && atomic_load_explicit(doubting->cancel, memory_order_relaxed)) ||
               clock_now_ns() >= doubting->end_ns;
}

static bool is_decoded(const struct schema_field *field) {
        return field->is_stored && field->coding == CODING_PLAIN &&
               (field->kind == FIELD_PICTURE || field->kind == FIELD_SOUND);
}

/* ---- all samples: what the index knows ------------------------------------------------------------------------- */

static void look_at_lengths(struct doubting *doubting, uint32_t field) {
        for (uint64_t i = 0; i < doubting->source->n_samples; i++) {
                struct extent extent;

                if (i % CLOCK_EVERY == 0 && is_over(doubting))
                        return;
                source_locate(doubting->source, i, field, &extent);
                if (extent.shard) /* so have all the others */
                        return;
                if (extent.flags & EXTENT_ABSENT)
                        continue;
                if (extent.flags & (EXTENT_NOT_REGULAR | EXTENT_UNREACHABLE))
                        note(&doubting->not_files, i);
                else if (extent.length == 0)
                        note(&doubting->empty, i);
        }
}

/* ---- some samples: what they begin with ------------------------------------------------------------------------ */

/* Returns how many bytes were read, or a negative errno. */
static ssize_t read_head(const struct doubting *doubting, const struct extent *extent, uint8_t *head) {
        char path[SOURCE_NAME_SIZE];
        _cleanup_(closep) int fd = -1;
        ssize_t n;

        extent_path(extent, path);
        fd = beneath_open(dataset_root_fd(doubting->dataset), path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;
        n = pread(fd, head, HEAD_BYTES, (off_t)extent->offset);
        return n < 0 ? -errno : n;
}

static void tell_sample(const struct doubting *doubting, uint64_t sample) {
        if (doubting->sample)
                atomic_store_explicit(doubting->sample, sample, memory_order_relaxed);
}

static void look_at_head(struct doubting *doubting, uint64_t sample, uint32_t field) {
        bool is_picture = doubting->source->schema.fields[field].kind == FIELD_PICTURE;
        uint8_t head[HEAD_BYTES];
        struct extent extent;
        ssize_t n;

        source_locate(doubting->source, sample, field, &extent);
        if (extent.shard || extent.flags || extent.length == 0)
                return;
        tell_sample(doubting, sample);
        n = read_head(doubting, &extent, head);
        tell_sample(doubting, DOUBTS_NO_SAMPLE);
        doubting->n_heads++;
        if (n < 0) {
                if (doubting->unreadable.n == 0)
                        doubting->error = (int)n;
                note(&doubting->unreadable, sample);
        } else if (!(is_picture ? looks_like_picture(head, (size_t)n) : looks_like_sound(head, (size_t)n))) {
                if (doubting->odd.n == 0)
                        for (size_t i = 0; i < 8 && i < (size_t)n; i++)
                                snprintf(doubting->begins + 3 * i, 4, " %02x", head[i]);
                note(&doubting->odd, sample);
        } else if (is_picture && deep_bits(head, (size_t)n) > 0) {
                note(deep_bits(head, (size_t)n) <= 16 ? &doubting->deep : &doubting->deeper, sample);
        }
}

/* One of each of DOUBTS_FILES equal parts, at a place in it that differs from part to part: in folders that were made
 * by a program, each tenth file may be of one kind. */
static void look_at_heads(struct doubting *doubting, uint32_t field) {
        uint64_t n = doubting->source->n_samples, n_looks = n < DOUBTS_FILES ? n : DOUBTS_FILES;

        for (uint64_t i = 0; i < n_looks && !is_over(doubting); i++) {
                uint64_t begin = i * n / n_looks, end = (i + 1) * n / n_looks;

                look_at_head(doubting, begin + i * 2654435761u % (end - begin), field);
        }
}

/* ---- the sentence ---------------------------------------------------------------------------------------------- */

/* Adds "WHAT: N (first: NAME)", or "WHAT: N of SEEN, as in ...". Returns the length of the text. */
static size_t tell(const struct doubting *doubting, const struct kind *kind, uint64_t n_seen, const char *what,
                   char *text, size_t n) {
        char name[SOURCE_NAME_SIZE], shown[NAME_SHOWN + 1], of[48] = "";

        if (kind->n == 0 || n >= DLP_TEXT_MAX)
                return n;
        source_name(doubting->source, kind->first, name);
        shorten(shown, sizeof(shown), "%s", name); /* up to four of them are in the sentence */
        if (n_seen > 0)
                snprintf(of, sizeof(of), " of the %llu looked at", (unsigned long long)n_seen);
        return n + (size_t)snprintf(text + n, DLP_TEXT_MAX - n, "%s%s: %llu%s (first: %s)", n > 0 ? "; " : "", what,
                                    (unsigned long long)kind->n, of, shown);
}

/* What a picture of 8 bits does not keep. */
static void tell_deep(const struct doubting *doubting, struct why *ret_text) {
        char text[DLP_TEXT_MAX] = "";

        if (tell(doubting, &doubting->deep, doubting->n_heads, "pictures of one channel with more than 8 bits", text,
                 0))
                why_set(ret_text, 0, "%s: without decode(mode=I;16), values above 255 become 255, as in Pillow", text);
        else if (tell(doubting, &doubting->deeper, doubting->n_heads,
                      "pictures of one channel with more than 16 bits, or of floats", text, 0))
                why_set(ret_text, 0, "%s: their values are not kept; store them as arrays, in .npy files", text);
}

static void tell_all(const struct doubting *doubting, struct why *ret_text) {
        char text[DLP_TEXT_MAX] = "", what[128];
        size_t n = 0;

        n = tell(doubting, &doubting->empty, 0, "empty files", text, n);
        n = tell(doubting, &doubting->not_files, 0, "links to nothing, or not files", text, n);
        snprintf(what, sizeof(what), "files that are not what their names say, as they begin with%s",
                 doubting->begins[0] ? doubting->begins : " nothing");
        n = tell(doubting, &doubting->odd, doubting->n_heads, what, text, n);
        snprintf(what, sizeof(what), "files that cannot be read (%s)", why_text(doubting->error));
        n = tell(doubting, &doubting->unreadable, doubting->n_heads, what, text, n);
        if (n > 0)
                why_set(ret_text, 0, "of %llu samples, some can probably not be decoded: %s",
                        (unsigned long long)doubting->source->n_samples, text);
        else
                tell_deep(doubting, ret_text);
}

bool doubts_end_jobs(const char *text) {
        return strstr(text, "not be decoded: ");
}

void dataset_doubts(const struct dataset *dataset, uint64_t max_ns, const atomic_bool *cancel,
                    _Atomic uint64_t *ret_sample, struct why *ret_text) {
        const struct source *source = dataset_source(dataset);
        uint64_t begin_ns = clock_now_ns();
        struct doubting doubting = { .dataset = dataset, .source = source, .cancel = cancel, .sample = ret_sample };

        ret_text->text[0] = '\0';
        if (source->growth || source->n_parts > 0)
                return;
        for (uint32_t i = 0; i < source->schema.n_fields; i++)
                if (is_decoded(&source->schema.fields[i])) {
                        doubting.end_ns = begin_ns + max_ns / 2;
                        look_at_lengths(&doubting, i);
                        doubting.end_ns = begin_ns + max_ns;
                        look_at_heads(&doubting, i);
                }
        tell_all(&doubting, ret_text);
}

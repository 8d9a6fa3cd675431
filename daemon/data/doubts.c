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
#include "proto/base/shown/shorten.h"

#define HEAD_BYTES  512u  /* enough for all that looks_like.h knows */
#define BYTES_LOOKS 8u    /* samples of bytes of unknown meaning, after which no picture is expected */
#define CLOCK_EVERY 1024u /* samples between two looks at the clock */
#define NAME_SHOWN  100   /* bytes */

/* Of one kind of doubt: how many, and the first. */
struct doubt_count {
        uint64_t n, first;
};

struct doubting {
        const struct dataset *dataset;
        const struct source *source;
        uint64_t end_ns;
        const atomic_bool *cancel;
        _Atomic uint64_t *sample; /* whose file is being read */
        uint64_t n_heads;         /* files whose first bytes were read */
        struct doubt_count empty, not_files, odd, unreadable, deep, deeper;
        char begins[3 * 8 + 1]; /* of the first odd one */
        int error;              /* of the first unreadable one */
};

static void doubts_note(struct doubt_count *kind, uint64_t sample) {
        if (kind->n++ == 0)
                kind->first = sample;
}

static bool doubts_is_over(const struct doubting *doubting) {
        return (doubting->cancel && atomic_load_explicit(doubting->cancel, memory_order_relaxed)) ||
               clock_now_ns() >= doubting->end_ns;
}

static bool is_decoded(const struct schema_field *field) {
        return field->kind == FIELD_PICTURE || field->kind == FIELD_SOUND;
}

/* Bytes of unknown meaning may be pictures as well: a job that names steps for them says so. */
static bool is_looked_at(const struct schema_field *field) {
        return field->is_stored && !field->is_gathered && field->coding == CODING_PLAIN &&
               (is_decoded(field) || field->kind == FIELD_BYTES);
}

/* ---- all samples: what the index knows ------------------------------------------------------------------------- */

static void look_at_lengths(struct doubting *doubting, uint32_t field) {
        for (uint64_t i = 0; i < doubting->source->n_samples; i++) {
                struct extent extent;

                if (i % CLOCK_EVERY == 0 && doubts_is_over(doubting))
                        return;
                source_locate(doubting->source, i, field, &extent);
                if (extent.shard) /* so have all the others */
                        return;
                if (extent.flags & EXTENT_ABSENT)
                        continue;
                if (extent.flags & (EXTENT_NOT_REGULAR | EXTENT_UNREACHABLE))
                        doubts_note(&doubting->not_files, i);
                else if (extent.length == 0)
                        doubts_note(&doubting->empty, i);
        }
}

/* ---- some samples: what they begin with ------------------------------------------------------------------------ */

/* The first bytes of a sample's file, or of its part of a file, and what they tell of a picture. */
struct head {
        uint8_t bytes[HEAD_BYTES];
        size_t n;
        unsigned bits; /* deep_bits() */
};

/* Reads from byte `at` of the extent on. Returns how many bytes, or a negative errno. */
static ssize_t doubts_read_at(int fd, const struct extent *extent, uint64_t at, uint8_t *bytes) {
        uint64_t n_left = extent->length > at ? extent->length - at : 0;
        ssize_t n = pread(fd, bytes, n_left < HEAD_BYTES ? n_left : HEAD_BYTES, (off_t)(extent->offset + at));

        return n < 0 ? -errno : n;
}

/* The tags of a TIFF are often its last bytes. */
static unsigned doubts_bits_of(int fd, const struct extent *extent, const struct head *head) {
        uint32_t tags_at = tiff_tags_at(head->bytes, head->n);
        uint8_t tags[HEAD_BYTES];
        ssize_t n;

        if (tags_at == 0)
                return deep_bits(head->bytes, head->n);
        n = doubts_read_at(fd, extent, tags_at, tags);
        return n > 0 ? tiff_deep_bits(head->bytes, tags, (size_t)n) : 0;
}

/* 0 or a negative errno. */
static int read_head(const struct doubting *doubting, const struct extent *extent, struct head *ret_head) {
        char path[SOURCE_NAME_SIZE];
        _cleanup_(closep) int fd = -1;
        ssize_t n;

        extent_path(extent, path);
        fd = beneath_open(dataset_root_fd(doubting->dataset), extent->shard ? extent->shard : path,
                          O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;
        n = doubts_read_at(fd, extent, 0, ret_head->bytes);
        if (n < 0)
                return (int)n;
        ret_head->n = (size_t)n;
        ret_head->bits = doubts_bits_of(fd, extent, ret_head);
        return 0;
}

static void tell_sample(const struct doubting *doubting, uint64_t sample) {
        if (doubting->sample)
                atomic_store_explicit(doubting->sample, sample, memory_order_relaxed);
}

/* Of a file of its own its name has said what it is. */
static void doubts_note_file(struct doubting *doubting, uint64_t sample, bool is_picture, const struct head *head,
                             int error) {
        if (error < 0) {
                if (doubting->unreadable.n == 0)
                        doubting->error = error;
                doubts_note(&doubting->unreadable, sample);
        } else if (!(is_picture ? looks_like_picture(head->bytes, head->n) : looks_like_sound(head->bytes, head->n))) {
                if (doubting->odd.n == 0)
                        for (size_t i = 0; i < 8 && i < head->n; i++)
                                snprintf(doubting->begins + 3 * i, 4, " %02x", head->bytes[i]);
                doubts_note(&doubting->odd, sample);
        }
}

static void look_at_head(struct doubting *doubting, uint64_t sample, uint32_t idx_field) {
        const struct schema_field *field = &doubting->source->schema.fields[idx_field];
        struct extent extent;
        struct head head;
        int r;

        source_locate(doubting->source, sample, idx_field, &extent);
        if (extent.flags || extent.length == 0)
                return;
        tell_sample(doubting, sample);
        r = read_head(doubting, &extent, &head);
        tell_sample(doubting, DOUBTS_NO_SAMPLE);
        if (is_decoded(field) || (r == 0 && looks_like_picture(head.bytes, head.n)))
                doubting->n_heads++;
        if (!extent.shard && is_decoded(field))
                doubts_note_file(doubting, sample, field->kind == FIELD_PICTURE, &head, r);
        if (r == 0 && field->kind != FIELD_SOUND && head.bits > 0)
                doubts_note(head.bits <= 16 ? &doubting->deep : &doubting->deeper, sample);
}

/* One of each of DOUBTS_FILES equal parts, at a place in it that differs from part to part: in folders that were made
 * by a program, each tenth file may be of one kind. */
static void look_at_heads(struct doubting *doubting, uint32_t field) {
        uint64_t n = doubting->source->n_samples, n_looks = n < DOUBTS_FILES ? n : DOUBTS_FILES;
        bool is_bytes = doubting->source->schema.fields[field].kind == FIELD_BYTES;
        uint64_t n_deep = doubting->deep.n + doubting->deeper.n;

        for (uint64_t i = 0; i < n_looks && !doubts_is_over(doubting); i++) {
                uint64_t begin = i * n / n_looks, end = (i + 1) * n / n_looks;

                if (is_bytes && i == BYTES_LOOKS && doubting->deep.n + doubting->deeper.n == n_deep)
                        return;
                look_at_head(doubting, begin + i * 2654435761u % (end - begin), field);
        }
}

/* ---- the sentence ---------------------------------------------------------------------------------------------- */

/* Adds "WHAT: N (first: NAME)", or "WHAT: N of SEEN, as in ...". Returns the length of the text. */
static size_t doubts_tell(const struct doubting *doubting, const struct doubt_count *kind, uint64_t n_seen,
                          const char *what, char *text, size_t n) {
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

        if (doubts_tell(doubting, &doubting->deep, doubting->n_heads, "pictures of one channel with more than 8 bits",
                        text, 0))
                why_set(ret_text, 0, "%s: without decode(mode=I;16), values above 255 become 255, as in Pillow", text);
        else if (doubts_tell(doubting, &doubting->deeper, doubting->n_heads,
                             "pictures of one channel with more than 16 bits, or of floats", text, 0))
                why_set(ret_text, 0, "%s: without decode(mode=F), values above 255 become 255, as in Pillow", text);
}

static void tell_all(const struct doubting *doubting, struct why *ret_text) {
        char text[DLP_TEXT_MAX] = "", what[128];
        size_t n = 0;

        n = doubts_tell(doubting, &doubting->empty, 0, "empty files", text, n);
        n = doubts_tell(doubting, &doubting->not_files, 0, "links to nothing, or not files", text, n);
        snprintf(what, sizeof(what), "files that are not what their names say, as they begin with%s",
                 doubting->begins[0] ? doubting->begins : " nothing");
        n = doubts_tell(doubting, &doubting->odd, doubting->n_heads, what, text, n);
        snprintf(what, sizeof(what), "files that cannot be read (%s)", why_text(doubting->error));
        n = doubts_tell(doubting, &doubting->unreadable, doubting->n_heads, what, text, n);
        if (n > 0)
                why_set(ret_text, 0, "of %llu samples, some can probably not be decoded: %s",
                        (unsigned long long)doubting->source->n_samples, text);
        else
                tell_deep(doubting, ret_text);
}

bool doubts_end_jobs(const char *text) {
        return strstr(text, "not be decoded: ");
}

bool doubts_are_settled(const char *text, const char *pipeline) {
        return !doubts_end_jobs(text) && (strstr(pipeline, "mode=I;16") || strstr(pipeline, "mode=F") ||
                                          strstr(pipeline, "mask=uint16") || strstr(pipeline, "mask=int"));
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
                if (is_looked_at(&source->schema.fields[i])) {
                        doubting.end_ns = begin_ns + max_ns / 2;
                        if (is_decoded(&source->schema.fields[i]))
                                look_at_lengths(&doubting, i);
                        doubting.end_ns = begin_ns + max_ns;
                        look_at_heads(&doubting, i);
                }
        tell_all(&doubting, ret_text);
}

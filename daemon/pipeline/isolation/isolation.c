#include "daemon/pipeline/isolation/isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/ring/held.h"
#include "proto/base/cleanup.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* ---- all of it --------------------------------------------------------------------------------------------------- */

int isolation_init(struct isolation *isolation, const struct isolation_options *options, struct why *why) {
        struct cell *cell;
        int r;

        *isolation = (struct isolation){
                .setup = { .limits = options->limits, .jpeg = options->decode_jpeg, .most_bytes = options->most_bytes },
                .timeout_ns = options->timeout_ns,
        };
        cells_init(&isolation->cells, options->program ? options->program : "/proc/self/exe");
        r = cell_start(&isolation->cells, RENDER_KIND, &isolation->setup, sizeof(isolation->setup), &cell, why);
        if (r < 0) {
                cells_fini(&isolation->cells);
                return r;
        }
        cell_end(cell, 0, NULL);
        return 0;
}

void isolation_fini(struct isolation *isolation) {
        cells_fini(&isolation->cells);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int write_all(int fd, const uint8_t *bytes, uint64_t n_bytes) {
        for (uint64_t done = 0; done < n_bytes;) {
                ssize_t n = write(fd, bytes + done, n_bytes - done);

                if (n < 0 && errno != EINTR)
                        return -errno;
                done += n > 0 ? (uint64_t)n : 0;
        }
        return 0;
}

int isolation_share(struct isolation *isolation, const char *name, const void *bytes, uint64_t n_bytes,
                    struct cell_memory *ret_memory) {
        _cleanup_(closep) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        int r;

        if (fd < 0 || ftruncate(fd, (off_t)n_bytes) < 0)
                return -errno;
        r = bytes ? write_all(fd, bytes, n_bytes) : 0;
        if (r < 0)
                return r;
        if (fcntl(fd, F_ADD_SEALS, SEALS | (bytes ? F_SEAL_WRITE : 0)) < 0)
                return -errno;
        *ret_memory = (struct cell_memory){
                .number = cells_number(&isolation->cells), .n_bytes = n_bytes, .fd = take_fd(&fd), .is_writable = !bytes
        };
        return 0;
}

void isolation_unshare(struct isolation *isolation, struct cell_memory *memory) {
        if (memory->number == 0)
                return;
        cells_forget(&isolation->cells, memory->number);
        close(memory->fd);
        *memory = (struct cell_memory){ .fd = -1 };
}

/* ---- a stream ---------------------------------------------------------------------------------------------------- */

static void describe_left(const struct program *program, struct render_program *words) {
        for (uint32_t i = 0; i < program_n_fields(program); i++) {
                struct picture_form form;

                if (!codec_left_form(program_codec(program, i), &form))
                        continue;
                if (form.operations_at > 0)
                        words->left_operations |= 1u << i;
                else
                        words->left_forms |= 1u << i;
        }
}

static int share_program(struct isolated *isolated, uint32_t idx, const struct programs *programs) {
        const struct program *program = programs_part(programs, idx);
        const struct source *source = programs_source(programs, idx);
        size_t n_text = strlen(program_text(program)) + 1;
        _cleanup_(freep) struct render_program *words = calloc(1, sizeof(*words) + n_text);

        if (!words)
                return -ENOMEM;
        words->schema = source->schema;
        words->n_classes = source->n_classes;
        describe_left(program, words);
        memcpy(words->text, program_text(program), n_text);
        return isolation_share(isolated->isolation, "dataloaderd-pipeline", words, sizeof(*words) + n_text,
                               &isolated->programs[idx]);
}

/* A description of its own, so that the ring counts as held until the last cell has unmapped it (ring/held.h). */
static int share_slots(struct isolated *isolated, const struct ring *ring, struct why *why) {
        int fd = held_lend(ring->payload_segment.fd, O_RDWR, why);

        if (fd < 0)
                return fd;
        isolated->slots_base = ring->payload_segment.base;
        isolated->slots = (struct cell_memory){ .number = cells_number(&isolated->isolation->cells),
                                                .n_bytes = ring->payload_segment.n_bytes,
                                                .fd = fd,
                                                .is_writable = true };
        return 0;
}

static bool is_for_cells(const struct programs *programs) {
        for (uint32_t k = 0; k < programs_n_parts(programs); k++)
                for (uint32_t i = 0; i < program_n_fields(programs_part(programs, k)); i++)
                        if (codec_interprets(program_codec(programs_part(programs, k), i)))
                                return true;
        return false;
}

/* What would be decoded in the daemon all the same. */
static int refuse_others(const struct programs *programs, struct why *why) {
        for (uint32_t k = 0; k < programs_n_parts(programs); k++) {
                const struct program *program = programs_part(programs, k);

                for (uint32_t i = 0; i < program_n_fields(program); i++) {
                        const struct codec *codec = program_codec(program, i);
                        const char *step = codec_is_plugged(codec)                 ? "plugin(...)"
                                           : codec_plan_boxes(codec) != CODEC_NONE ? "random_iou_crop"
                                                                                   : NULL;

                        if (step)
                                return why_set(why, -EINVAL,
                                               "pipeline: %s is not there yet with isolation = \"process\", which the "
                                               "daemon's configuration asks for",
                                               step);
                }
        }
        return 0;
}

int isolated_new(struct isolation *isolation, const struct ring *ring, const struct programs *programs,
                 struct isolated **ret_isolated, struct why *why) {
        struct isolated *isolated;
        uint32_t n = programs_n_parts(programs);
        int r;

        *ret_isolated = NULL;
        r = refuse_others(programs, why);
        if (r < 0 || !is_for_cells(programs))
                return r;
        isolated = calloc(1, sizeof(*isolated) + n * sizeof(isolated->programs[0]));
        if (!isolated)
                return why_errno(why, -ENOMEM, "isolation");
        isolated->isolation = isolation;
        r = share_slots(isolated, ring, why);
        for (; r == 0 && isolated->n_programs < n; isolated->n_programs++) {
                r = share_program(isolated, isolated->n_programs, programs);
                if (r < 0)
                        why_errno(why, r, "isolation: a pipeline for decoders");
        }
        if (r < 0) {
                isolated_free(isolated);
                return r;
        }
        *ret_isolated = isolated;
        return 0;
}

void isolated_free(struct isolated *isolated) {
        if (!isolated)
                return;
        isolation_unshare(isolated->isolation, &isolated->slots);
        for (uint32_t i = 0; i < isolated->n_programs; i++)
                isolation_unshare(isolated->isolation, &isolated->programs[i]);
        free(isolated);
}

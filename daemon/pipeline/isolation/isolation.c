#include "daemon/pipeline/isolation/isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plugin/plugins.h"
#include "daemon/ring/lent.h"
#include "proto/base/cleanup.h"

#define HELLO_NS 10000000000ull /* until a cell is confined */

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* What cell_start() says, as the daemon's own sentence. */
int isolation_start(struct isolation *isolation, const struct render_setup *setup, struct cell *cell, struct why *why) {
        const struct cell_terms terms = { .kind = RENDER_KIND,
                                          .trust = CELL_STRANGE,
                                          .setup = setup,
                                          .n_setup = sizeof(*setup),
                                          .hello = { .limit_ns = HELLO_NS } };
        struct why how;
        int r = cell_start(cell, isolation->cells, &terms, &how);

        if (r == CELL_REFUSES)
                return why_set(why, -ENOSYS, "isolation: %s", how.text);
        if (cell_has_failed(r))
                return why_set(why, -ENOSYS, "isolation: a process for a decoder %s", how.text);
        return r < 0 ? why_set(why, r, "isolation: starting a process for a decoder: %s", how.text) : 0;
}

int isolation_init(struct isolation *isolation, const struct isolation_options *options, struct why *why) {
        struct cell cell = { 0 };
        int r;

        *isolation = (struct isolation){
                .cells = options->cells,
                .setup = { .limits = options->limits, .jpeg = options->decode_jpeg, .most_bytes = options->most_bytes },
                .timeout_ns = options->timeout_ns,
        };
        r = isolation_start(isolation, &isolation->setup, &cell, why);
        cell_end(&cell);
        return r;
}

/* ---- a feed ---------------------------------------------------------------------------------------------------- */

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

/* What a pipeline uses of plug-ins. */
struct plugged {
        uint32_t n_plugins, n_outputs;
        const struct plugin *plugins[DLP_TENSORS_MAX * PROGRAM_USES_MAX];
        struct dlplugin_form outputs[DLP_TENSORS_MAX * PROGRAM_USES_MAX];
};

static void note_plugin(struct plugged *plugged, const struct plugin *plugin) {
        for (uint32_t i = 0; i < plugged->n_plugins; i++)
                if (plugged->plugins[i] == plugin)
                        return;
        plugged->plugins[plugged->n_plugins++] = plugin;
}

static void find_plugged(const struct program *program, struct plugged *plugged) {
        const struct plugin_use *uses[PROGRAM_USES_MAX];

        for (uint32_t i = 0; i < program_n_fields(program); i++) {
                uint32_t n = program_uses(program, i, uses);

                for (uint32_t k = 0; k < n; k++) {
                        note_plugin(plugged, plugin_use_plugin(uses[k]));
                        plugged->outputs[plugged->n_outputs++] = *plugin_use_output(uses[k]);
                }
        }
}

static void describe_plugged(const struct plugged *plugged, struct render_program *words) {
        uint8_t *at = (uint8_t *)words + words->plugins_offset;

        words->n_plugins = plugged->n_plugins;
        words->n_outputs = plugged->n_outputs;
        for (uint32_t i = 0; i < plugged->n_plugins; i++, at += sizeof(struct plugin_table))
                memcpy(at, plugin_table(plugged->plugins[i]), sizeof(struct plugin_table));
        memcpy(at, plugged->outputs, plugged->n_outputs * sizeof(plugged->outputs[0]));
}

static uint64_t isolation_aligned(uint64_t n_bytes) {
        return (n_bytes + 63) / 64 * 64;
}

static int share_program(struct isolated_feed *isolated, uint32_t idx, const struct programs *programs) {
        const struct program *program = programs_part(programs, idx);
        const struct source *source = programs_source(programs, idx);
        _cleanup_(freep) struct plugged *plugged = calloc(1, sizeof(*plugged));
        _cleanup_(freep) struct render_program *words = NULL;
        size_t n_text = strlen(program_text(program)) + 1;
        uint64_t n_before = isolation_aligned(sizeof(*words) + n_text), n_bytes;

        if (!plugged)
                return -ENOMEM;
        find_plugged(program, plugged);
        n_bytes = n_before + plugged->n_plugins * sizeof(struct plugin_table) +
                  plugged->n_outputs * sizeof(plugged->outputs[0]);
        words = calloc(1, n_bytes);
        if (!words)
                return -ENOMEM;
        words->schema = source->schema;
        words->n_classes = source->n_classes;
        words->plugins_offset = n_before;
        describe_left(program, words);
        memcpy(words->text, program_text(program), n_text);
        describe_plugged(plugged, words);
        return cells_share(isolated->isolation->cells, "dataloaderd-pipeline", words, n_bytes,
                           &isolated->programs[idx]);
}

/* A description of its own, so that the ring counts as held until the last cell has unmapped it (ring/lent.h). */
static int share_slots(struct isolated_feed *isolated, const struct ring *ring, struct why *why) {
        int fd = lent_open(ring->payload_segment.fd, O_RDWR, why);

        if (fd < 0)
                return fd;
        isolated->slots_base = ring->payload_segment.base;
        isolated->slots = (struct cell_memory){ .number = cells_number(isolated->isolation->cells),
                                                .n_bytes = ring->payload_segment.n_bytes,
                                                .fd = fd,
                                                .is_writable = true };
        return 0;
}

static bool isolation_is_for_cells(const struct programs *programs) {
        for (uint32_t k = 0; k < programs_n_parts(programs); k++)
                for (uint32_t i = 0; i < program_n_fields(programs_part(programs, k)); i++)
                        if (codec_interprets(program_codec(programs_part(programs, k), i)))
                                return true;
        return false;
}

int isolated_feed_new(struct isolation *isolation, const struct ring *ring, const struct programs *programs,
                      struct isolated_feed **ret_isolated, struct why *why) {
        struct isolated_feed *isolated;
        uint32_t n = programs_n_parts(programs);
        int r;

        *ret_isolated = NULL;
        if (!isolation_is_for_cells(programs))
                return 0;
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
                isolated_feed_free(isolated);
                return r;
        }
        *ret_isolated = isolated;
        return 0;
}

void isolated_feed_free(struct isolated_feed *isolated) {
        if (!isolated)
                return;
        cells_unshare(isolated->isolation->cells, &isolated->slots);
        for (uint32_t i = 0; i < isolated->n_programs; i++)
                cells_unshare(isolated->isolation->cells, &isolated->programs[i]);
        free(isolated);
}

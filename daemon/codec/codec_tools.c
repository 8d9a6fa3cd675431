#include "daemon/codec/codec_tools.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/codec/codec_type.h"
#include "daemon/codec/pictures/shared.h"
#include "daemon/decode/sound.h"

int codec_tools_new(const struct decode_limits *limits, enum decode_jpeg jpeg, struct codec_tools **ret_tools,
                    struct why *why) {
        struct codec_tools *tools = calloc(1, sizeof(*tools));
        int r;

        if (!tools)
                return why_errno(why, -ENOMEM, "a worker's tools");
        r = decoder_new(limits, jpeg, &tools->decoder, why);
        if (r == 0)
                r = workspace_new(RESIZE_CODE_BEST, &tools->workspace, why);
        if (r < 0) {
                codec_tools_free(tools);
                return r;
        }
        workspace_set_clock(tools->workspace, &tools->clock);
        tools->max_pixels = limits->max_pixels;
        tools->max_step_pixels = limits->max_step_pixels;
        *ret_tools = tools;
        return 0;
}

void codec_tools_free(struct codec_tools *tools) {
        if (!tools)
                return;
        if (tools->workspace) /* it was made last, and nothing was kept before */
                codec_tools_trim(tools);
        free(tools->shared.pixels.bytes);
        decoder_free(tools->decoder);
        workspace_free(tools->workspace);
        sound_close(tools->sound);
        plugin_seats_free(tools->seats);
        free(tools);
}

size_t codec_tools_bytes(const struct codec_tools *tools) {
        return decoder_scratch_bytes(tools->decoder) + workspace_bytes(tools->workspace) + tools->elements.n_bytes +
               tools->rows.n_bytes + tools->planes.n_bytes + tools->whole.n_bytes + tools->wave.n_bytes +
               token_tools_bytes(&tools->tokens) + tools->plan_memory.n_bytes +
               (shared_is_ready(tools) ? 0 : tools->shared.pixels.n_bytes) +
               (tools->seats ? plugin_seats_bytes(tools->seats) : 0);
}

static void codec_trim(struct codec_memory *memory) {
        free(memory->bytes);
        *memory = (struct codec_memory){ 0 };
}

void codec_tools_trim(struct codec_tools *tools) {
        decoder_trim(tools->decoder);
        workspace_trim(tools->workspace);
        if (!shared_is_ready(tools))
                codec_trim(&tools->shared.pixels);
        codec_trim(&tools->plan_memory);
        codec_trim(&tools->elements);
        codec_trim(&tools->rows);
        codec_trim(&tools->planes);
        codec_trim(&tools->whole);
        codec_trim(&tools->wave);
        token_tools_trim(&tools->tokens);
        if (tools->seats)
                plugin_seats_trim(tools->seats);
}

uint64_t codec_tools_beside_ns(struct codec_tools *tools) {
        return tools->seats ? plugin_seats_cpu_ns(tools->seats) : 0;
}

void codec_tools_begin_sample(struct codec_tools *tools) {
        tools->wanting.is_over = false;
        shared_forget(tools);
}

struct codec_counts codec_tools_take_counts(struct codec_tools *tools) {
        struct codec_counts counts = tools->counts;

        tools->counts = (struct codec_counts){ 0 };
        return counts;
}

void codec_tools_set_wanted(struct codec_tools *tools, bool (*is_wanted)(const void *userdata), const void *userdata) {
        workspace_set_wanted(tools->workspace, is_wanted, userdata);
        tools->wanting = (struct wanting){ .is_wanted = is_wanted, .userdata = userdata };
}

struct stage_clock *codec_tools_clock(struct codec_tools *tools) {
        return &tools->clock;
}

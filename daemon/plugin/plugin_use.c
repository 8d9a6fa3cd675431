/* A step of a plug-in with its values, and the workers that run it. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plugin/plugin.h"
#include "proto/base/cleanup.h"

#define NEED_MORE 8192u /* bytes: both begin on a page */
#define TRIES     3u    /* of a sample whose process ends: the memory killer takes processes at random */

/* ---- settling ------------------------------------------------------------------------------------------------------
 */

/* It was settled where the plug-in is. */
static int settled_elsewhere(struct plugins *plugins, struct plugin_reply *reply, struct why *why) {
        if (plugins->idx_output >= plugins->n_outputs)
                return why_set(why, -EINVAL, "more steps of plug-ins than were described");
        *reply = (struct plugin_reply){ .output = plugins->outputs[plugins->idx_output++] };
        return 0;
}

static int plugin_use_settle(struct plugin_use *use, struct plugin_reply *reply, struct why *why) {
        struct plugin *plugin = use->plugin;
        struct why what;
        int r = -EPIPE;

        if (plugin->described)
                return settled_elsewhere(plugin->described, reply, why);
        for (unsigned i = 0; i < TRIES && r == -EPIPE; i++)
                r = plugin_ask(plugin, &plugin->cell, &use->request, NULL, NULL, reply, &what);
        return r < 0 ? why_set(why, r == -ENOMEM ? r : -EINVAL, "the plug-in %s %s", plugin->name, what.text) : 0;
}

static void plugin_use_freep(struct plugin_use **use) {
        plugin_use_free(*use);
}

void use_begin(struct plugin_use *use, struct plugin *plugin, uint32_t idx_step, const struct plugin_values *values) {
        static _Atomic uint64_t n_made;

        use->plugin = plugin;
        use->request = (struct plugin_request){ .question = PLUGIN_SETTLE, .idx_step = idx_step };
        use->request.serial = atomic_fetch_add_explicit(&n_made, 1, memory_order_relaxed) + 1;
        memcpy(use->request.values, values->values, sizeof(use->request.values));
}

int plugin_use_new(struct plugin *plugin, uint32_t idx_step, const struct plugin_values *values,
                   const struct dlplugin_form *input, struct plugin_use **ret_use, struct why *why) {
        _cleanup_(plugin_use_freep) struct plugin_use *use = calloc(1, sizeof(*use));
        struct plugin_reply reply;
        int r;

        if (!use)
                return why_errno(why, -ENOMEM, "pipeline");
        use_begin(use, plugin, idx_step, values);
        if (input)
                use->request.input = *input;
        r = plugin_use_settle(use, &reply, why);
        if (r < 0)
                return r;
        if (reply.result < 0)
                return why_set(why, -EINVAL, "%s.%s: %s", plugin->name, plugin->table->steps[idx_step].name,
                               reply.text);
        use->request.question = PLUGIN_RUN;
        use->request.output = reply.output;
        if (!plugin_is_form(&reply.output) && (input || !plugin_is_any_picture(&reply.output)))
                return why_set(why, -EINVAL, "%s.%s: wants to deliver an array that is impossible or too large",
                               plugin->name, plugin->table->steps[idx_step].name);
        if (input) {
                use->request.n_input_bytes = plugin_form_bytes(input);
                use->request.n_output_bytes = plugin_form_bytes(&reply.output);
        }
        *ret_use = TAKE_PTR(use);
        return 0;
}

void plugin_use_free(struct plugin_use *use) {
        free(use);
}

const struct plugin *plugin_use_plugin(const struct plugin_use *use) {
        return use->plugin;
}

const struct dlplugin_form *plugin_use_output(const struct plugin_use *use) {
        return &use->request.output;
}

bool plugin_use_is_picture(const struct plugin_use *use) {
        return plugin_is_any_picture(&use->request.output);
}

uint64_t plugin_form_bytes(const struct dlplugin_form *form) {
        return plugin_dtype_bytes(form->dtype) * dlplugin_elements(form);
}

/* ---- seats ---------------------------------------------------------------------------------------------------------
 */

/* What a worker has of one plug-in. */
struct plugin_seat {
        struct plugin_seat *next;
        struct plugin *plugin;
        bool is_shared;   /* it asks the process that all share, */
        struct cell cell; /* else its own */
        struct cell_area input, output;
};

struct plugin_seats {
        struct plugin_seat *first;
        bool are_alone; /* no process is shared */
};

int plugin_seats_new(struct plugin_seats **ret_seats) {
        struct plugin_seats *seats = calloc(1, sizeof(*seats));

        if (!seats)
                return -ENOMEM;
        *ret_seats = seats;
        return 0;
}

static void drop_areas(struct plugin_seat *seat) {
        cell_area_drop(seat->plugin->cells, &seat->input);
        cell_area_drop(seat->plugin->cells, &seat->output);
}

void plugin_seats_free(struct plugin_seats *seats) {
        while (seats && seats->first) {
                struct plugin_seat *seat = seats->first;

                seats->first = seat->next;
                cell_end(&seat->cell);
                drop_areas(seat);
                free(seat);
        }
        free(seats);
}

uint64_t plugin_seats_bytes(const struct plugin_seats *seats) {
        uint64_t n_bytes = 0;

        for (const struct plugin_seat *seat = seats->first; seat; seat = seat->next)
                n_bytes += seat->input.memory.n_bytes + seat->output.memory.n_bytes;
        return n_bytes;
}

void plugin_seats_trim(struct plugin_seats *seats) {
        for (struct plugin_seat *seat = seats->first; seat; seat = seat->next)
                drop_areas(seat);
}

static uint64_t shared_cpu_ns(struct plugin *plugin) {
        uint64_t ns;

        if (pthread_mutex_trylock(&plugin->lock) != 0) /* its user will ask, too */
                return 0;
        ns = cell_cpu_ns(&plugin->shared);
        pthread_mutex_unlock(&plugin->lock);
        return ns;
}

uint64_t plugin_seats_cpu_ns(struct plugin_seats *seats) {
        uint64_t ns = 0;

        for (struct plugin_seat *seat = seats->first; seat; seat = seat->next)
                ns += seat->is_shared ? shared_cpu_ns(seat->plugin) : cell_cpu_ns(&seat->cell);
        return ns;
}

static struct plugin_seat *find_seat(struct plugin_seats *seats, const struct plugin *plugin) {
        struct plugin_seat *seat = seats->first;

        while (seat && seat->plugin != plugin)
                seat = seat->next;
        return seat;
}

/* The worker's seat, which is made when it is needed for the first time. NULL: there is no memory. */
static struct plugin_seat *take_seat(struct plugin_seats *seats, struct plugin *plugin) {
        struct plugin_seat *seat = find_seat(seats, plugin);

        if (seat)
                return seat;
        seat = calloc(1, sizeof(*seat));
        if (!seat)
                return NULL;
        seat->plugin = plugin;
        seat->is_shared = plugin->table->threads == DLPLUGIN_SERIAL && !seats->are_alone;
        seat->next = seats->first;
        seats->first = seat;
        return seat;
}

/* ---- running -------------------------------------------------------------------------------------------------------
 */

static int reserve_for(const struct plugin_use *use, struct plugin_seats *seats, uint64_t n_input_bytes,
                       uint64_t n_output_bytes, struct why *why) {
        static const char NAME[] = "dataloaderd-plugin";
        struct cells *cells = use->plugin->cells;
        struct plugin_seat *seat = take_seat(seats, use->plugin);
        int r = seat ? cell_area_widen(cells, NAME, n_input_bytes, &seat->input) : -ENOMEM;

        if (r == 0)
                r = cell_area_widen(cells, NAME, n_output_bytes, &seat->output);
        if (r < 0)
                return why_errno(why, -ENOMEM, "%llu bytes for the plug-in %s",
                                 (unsigned long long)(n_input_bytes + n_output_bytes), use->plugin->name);
        seat->input.memory.is_writable = false; /* against accidents: a sample is tried again as it is */
        return 0;
}

int plugin_use_reserve(const struct plugin_use *use, struct plugin_seats *seats, struct why *why) {
        return reserve_for(use, seats, use->request.n_input_bytes, use->request.n_output_bytes, why);
}

uint64_t plugin_use_need(const struct plugin_use *use) {
        return use->request.n_input_bytes + use->request.n_output_bytes + NEED_MORE;
}

uint64_t plugin_use_need_for(size_t n_bytes, const struct dlplugin_form *output) {
        return n_bytes + plugin_form_bytes(output) + NEED_MORE;
}

uint64_t plugin_use_need_of_batch(const struct plugin_use *use, uint32_t n_samples) {
        return n_samples * (use->request.n_input_bytes + use->request.n_output_bytes) + NEED_MORE;
}

uint8_t *plugin_use_input(const struct plugin_use *use, struct plugin_seats *seats) {
        return find_seat(seats, use->plugin)->input.bytes;
}

static int seat_ask(struct plugin_seat *seat, const struct plugin_request *request, struct plugin_reply *reply,
                    struct why *why) {
        struct plugin *plugin = seat->plugin;
        int r;

        if (!seat->is_shared)
                return plugin_ask(plugin, &seat->cell, request, &seat->input, &seat->output, reply, why);
        pthread_mutex_lock(&plugin->lock);
        r = plugin_ask(plugin, &plugin->shared, request, &seat->input, &seat->output, reply, why);
        pthread_mutex_unlock(&plugin->lock);
        return r;
}

/* Whose fault is it? If no process can be started, not the sample's: what is short may be there a moment later. */
static int error_of(int r) {
        return r == -EPIPE || r == -ETIMEDOUT ? -EBADMSG : r == -ECANCELED ? r : -ENOMEM;
}

static int ask_tries(const struct plugin_use *use, struct plugin_seat *seat, const struct plugin_request *request,
                     unsigned n_tries, struct plugin_reply *reply, struct why *why) {
        const struct plugin_step *step = &use->plugin->table->steps[use->request.idx_step];
        const char *kind = table_kind(step) + 2; /* without "a " */
        struct why what;
        int r = -EPIPE;

        for (unsigned i = 0; i < n_tries && r == -EPIPE; i++)
                r = seat_ask(seat, request, reply, &what);
        if (r < 0)
                return why_set(why, error_of(r), "plug-in %s %s.%s %s", kind, use->plugin->name, step->name, what.text);
        if (reply->result < 0)
                return why_set(why, -EBADMSG, "plug-in %s %s.%s: %s", kind, use->plugin->name, step->name, reply->text);
        return 0;
}

/* Asks about a sample whose input lies in the seat. */
static int ask_about(const struct plugin_use *use, struct plugin_seat *seat, const struct plugin_draws *draws,
                     struct plugin_request *request, struct plugin_reply *reply, struct why *why) {
        request->seed = draws->seed;
        request->sample = draws->sample;
        request->epoch = draws->epoch;
        request->place = draws->place;
        return ask_tries(use, seat, request, TRIES, reply, why);
}

/* The same with an input that is copied each time: between two questions the memory may have been given back. */
static int ask_with(const struct plugin_use *use, struct plugin_seats *seats, const struct plugin_draws *draws,
                    const uint8_t *bytes, struct plugin_request *request, struct plugin_reply *reply, struct why *why) {
        int r = reserve_for(use, seats, request->n_input_bytes, request->n_output_bytes, why);

        if (r < 0)
                return r;
        if (request->n_input_bytes > 0)
                memcpy(plugin_use_input(use, seats), bytes, request->n_input_bytes);
        return ask_about(use, find_seat(seats, use->plugin), draws, request, reply, why);
}

void plugin_seats_be_alone(struct plugin_seats *seats) {
        seats->are_alone = true;
}

int plugin_seats_ask(struct plugin_seats *seats, const struct plugin_use *use, const struct plugin_request *request,
                     struct plugin_reply *ret_reply, struct why *why) {
        return ask_tries(use, find_seat(seats, use->plugin), request, 1, ret_reply, why);
}

const uint8_t *plugin_seats_output(struct plugin_seats *seats, const struct plugin_use *use) {
        return find_seat(seats, use->plugin)->output.bytes;
}

int plugin_use_run(const struct plugin_use *use, struct plugin_seats *seats, const struct plugin_draws *draws,
                   uint8_t *out, struct why *why) {
        struct plugin_seat *seat = find_seat(seats, use->plugin);
        struct plugin_request request = use->request;
        struct plugin_reply reply;
        int r = ask_about(use, seat, draws, &request, &reply, why);

        if (r == 0)
                memcpy(out, seat->output.bytes, request.n_output_bytes);
        return r;
}

/* ---- codecs --------------------------------------------------------------------------------------------------------
 */

int plugin_use_measure(const struct plugin_use *use, struct plugin_seats *seats, const struct plugin_draws *draws,
                       const uint8_t *bytes, size_t n_bytes, struct dlplugin_form *ret_output, struct why *why) {
        struct plugin_request request = use->request;
        struct plugin_reply reply;
        int r;

        request.question = PLUGIN_MEASURE;
        request.n_input_bytes = n_bytes;
        r = ask_with(use, seats, draws, bytes, &request, &reply, why);
        if (r < 0)
                return r;
        if (reply.output.shape[0] < 1 || reply.output.shape[1] < 1 || reply.output.shape[0] > UINT32_MAX ||
            reply.output.shape[1] > UINT32_MAX)
                return why_set(why, -EBADMSG, "plug-in codec %s.%s measures %lld x %lld pixels", use->plugin->name,
                               use->plugin->table->steps[use->request.idx_step].name, (long long)reply.output.shape[1],
                               (long long)reply.output.shape[0]);
        *ret_output = use->request.output;
        ret_output->shape[0] = reply.output.shape[0];
        ret_output->shape[1] = reply.output.shape[1];
        return 0;
}

int plugin_use_decode(const struct plugin_use *use, struct plugin_seats *seats, const struct plugin_draws *draws,
                      const uint8_t *bytes, size_t n_bytes, const struct dlplugin_form *output,
                      const uint8_t **ret_elements, struct why *why) {
        struct plugin_request request = use->request;
        struct plugin_reply reply;
        int r;

        request.n_input_bytes = n_bytes;
        request.output = *output;
        request.n_output_bytes = plugin_form_bytes(output);
        r = ask_with(use, seats, draws, bytes, &request, &reply, why);
        if (r == 0)
                *ret_elements = plugin_seats_output(seats, use);
        return r;
}

/* ---- collations ----------------------------------------------------------------------------------------------------
 */

int plugin_use_collate(const struct plugin_use *use, struct plugin_seats *seats, const struct plugin_draws *draws,
                       uint32_t n_samples, const uint8_t *samples, uint8_t *out, struct why *why) {
        struct plugin_request request = use->request;
        struct plugin_reply reply;
        int r;

        request.n_samples = n_samples;
        request.n_input_bytes *= n_samples;
        request.n_output_bytes *= n_samples;
        r = ask_with(use, seats, draws, samples, &request, &reply, why);
        if (r == 0)
                memcpy(out, plugin_seats_output(seats, use), request.n_output_bytes);
        return r;
}

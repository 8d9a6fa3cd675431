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

/* Starts the process if it does not run, and asks. Errors as process_ask(). */
static int plugin_ask(struct process *process, const struct plugin_request *request, struct plugin_reply *ret_reply,
                      struct why *why) {
        struct plugin_table ignored;
        int r = process_describe(process, &ignored, why);

        return r < 0 ? r : process_ask(process, request, ret_reply, why);
}

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
                r = plugin_ask(plugin->process, &use->request, reply, &what);
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
struct seat {
        struct seat *next;
        struct plugin *plugin;
        struct process *process; /* NULL: all share one */
        uint8_t *memory;         /* for input and output, where no process of its own has them */
        uint64_t n_bytes, output_offset;
};

struct plugin_seats {
        struct seat *first;
        bool are_alone; /* no process is shared */
};

int plugin_seats_new(struct plugin_seats **ret_seats) {
        struct plugin_seats *seats = calloc(1, sizeof(*seats));

        if (!seats)
                return -ENOMEM;
        *ret_seats = seats;
        return 0;
}

static void plugin_use_seat_free(struct seat *seat) {
        process_free(seat->process);
        free(seat->memory);
        free(seat);
}

void plugin_seats_free(struct plugin_seats *seats) {
        while (seats && seats->first) {
                struct seat *seat = seats->first;

                seats->first = seat->next;
                plugin_use_seat_free(seat);
        }
        free(seats);
}

uint64_t plugin_seats_bytes(const struct plugin_seats *seats) {
        uint64_t n_bytes = 0;

        for (const struct seat *seat = seats->first; seat; seat = seat->next)
                n_bytes += seat->n_bytes + (seat->process ? process_bytes(seat->process) : 0);
        return n_bytes;
}

void plugin_seats_trim(struct plugin_seats *seats) {
        for (struct seat *seat = seats->first; seat; seat = seat->next) {
                free(seat->memory);
                seat->memory = NULL;
                seat->n_bytes = seat->output_offset = 0;
                if (seat->process)
                        process_trim(seat->process);
        }
}

static uint64_t shared_cpu_ns(struct plugin *plugin) {
        uint64_t ns;

        if (!plugin->shared || pthread_mutex_trylock(&plugin->lock) != 0) /* its user will ask, too */
                return 0;
        ns = process_cpu_ns(plugin->shared);
        pthread_mutex_unlock(&plugin->lock);
        return ns;
}

uint64_t plugin_seats_cpu_ns(struct plugin_seats *seats) {
        uint64_t ns = 0;

        for (struct seat *seat = seats->first; seat; seat = seat->next)
                ns += seat->process ? process_cpu_ns(seat->process) : shared_cpu_ns(seat->plugin);
        return ns;
}

static struct seat *find_seat(struct plugin_seats *seats, const struct plugin *plugin) {
        struct seat *seat = seats->first;

        while (seat && seat->plugin != plugin)
                seat = seat->next;
        return seat;
}

/* The worker's seat, which is made when it is needed for the first time. */
static int take_seat(struct plugin_seats *seats, struct plugin *plugin, struct seat **ret_seat, struct why *why) {
        struct seat *seat = find_seat(seats, plugin);
        struct why what;
        int r;

        if (seat) {
                *ret_seat = seat;
                return 0;
        }
        seat = calloc(1, sizeof(*seat));
        if (!seat)
                return why_errno(why, -ENOMEM, "the plug-in %s", plugin->name);
        seat->plugin = plugin;
        r = plugin->shared && !seats->are_alone ? 0 : process_new(&plugin->terms, &seat->process, &what);
        if (r < 0) {
                plugin_use_seat_free(seat);
                return why_set(why, r == -EINVAL ? -EBADMSG : r, "%s", what.text);
        }
        seat->next = seats->first;
        seats->first = seat;
        *ret_seat = seat;
        return 0;
}

/* ---- running -------------------------------------------------------------------------------------------------------
 */

static uint64_t plugin_use_aligned(uint64_t n_bytes) {
        return (n_bytes + 63) / 64 * 64;
}

/* Memory of the worker's own for a process that all share. */
static int reserve(struct seat *seat, uint64_t n_input_bytes, uint64_t n_output_bytes, struct why *why) {
        uint64_t n_input = plugin_use_aligned(n_input_bytes), n_output = plugin_use_aligned(n_output_bytes);

        if (seat->memory && n_input <= seat->output_offset && n_output <= seat->n_bytes - seat->output_offset)
                return 0;
        n_input = n_input > seat->output_offset ? n_input : seat->output_offset;
        if (n_output < seat->n_bytes - seat->output_offset)
                n_output = seat->n_bytes - seat->output_offset;
        free(seat->memory);
        seat->n_bytes = seat->output_offset = 0;
        seat->memory = aligned_alloc(64, n_input + n_output + 64);
        if (!seat->memory)
                return why_errno(why, -ENOMEM, "%llu bytes for the plug-in %s",
                                 (unsigned long long)(n_input + n_output), seat->plugin->name);
        seat->n_bytes = n_input + n_output;
        seat->output_offset = n_input;
        return 0;
}

static int reserve_for(const struct plugin_use *use, struct plugin_seats *seats, uint64_t n_input_bytes,
                       uint64_t n_output_bytes, struct why *why) {
        struct seat *seat;
        int r = take_seat(seats, use->plugin, &seat, why);

        if (r < 0)
                return r;
        return seat->process ? process_reserve(seat->process, n_input_bytes, n_output_bytes, why)
                             : reserve(seat, n_input_bytes, n_output_bytes, why);
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
        struct seat *seat = find_seat(seats, use->plugin);

        return seat->process ? process_input(seat->process) : seat->memory;
}

/* The only process of the plug-in. Its memory is all threads': what it delivers is copied out of it. */
static int ask_shared(const struct seat *seat, const struct plugin_request *request, struct plugin_reply *reply,
                      struct why *why) {
        struct process *process = seat->plugin->shared;
        int r;

        pthread_mutex_lock(&seat->plugin->lock);
        r = process_reserve(process, request->n_input_bytes, request->n_output_bytes, why);
        if (r == 0) {
                memcpy(process_input(process), seat->memory, request->n_input_bytes);
                r = plugin_ask(process, request, reply, why);
        }
        if (r == 0 && reply->result == 0)
                memcpy(seat->memory + seat->output_offset, process_output(process), request->n_output_bytes);
        pthread_mutex_unlock(&seat->plugin->lock);
        return r;
}

static const uint8_t *output_of(struct seat *seat) {
        return seat->process ? process_output(seat->process) : seat->memory + seat->output_offset;
}

/* Whose fault is it? If no process can be started, not the sample's: what is short may be there a moment later. */
static int error_of(int r) {
        return r == -EPIPE || r == -ETIMEDOUT ? -EBADMSG : r == -ECANCELED ? r : -ENOMEM;
}

static int ask_tries(const struct plugin_use *use, struct seat *seat, const struct plugin_request *request,
                     unsigned n_tries, struct plugin_reply *reply, struct why *why) {
        const struct plugin_step *step = &use->plugin->table->steps[use->request.idx_step];
        const char *kind = table_kind(step) + 2; /* without "a " */
        struct why what;
        int r = -EPIPE;

        for (unsigned i = 0; i < n_tries && r == -EPIPE; i++)
                r = seat->process ? plugin_ask(seat->process, request, reply, &what)
                                  : ask_shared(seat, request, reply, &what);
        if (r < 0)
                return why_set(why, error_of(r), "plug-in %s %s.%s %s", kind, use->plugin->name, step->name, what.text);
        if (reply->result < 0)
                return why_set(why, -EBADMSG, "plug-in %s %s.%s: %s", kind, use->plugin->name, step->name, reply->text);
        return 0;
}

/* Asks about a sample whose input lies in the seat. */
static int ask_about(const struct plugin_use *use, struct seat *seat, const struct plugin_draws *draws,
                     struct plugin_request *request, struct plugin_reply *reply, struct why *why) {
        request->seed = draws->seed;
        request->sample = draws->sample;
        request->epoch = draws->epoch;
        request->place = draws->place;
        return ask_tries(use, seat, request, TRIES, reply, why);
}

void plugin_seats_be_alone(struct plugin_seats *seats) {
        seats->are_alone = true;
}

int plugin_seats_ask(struct plugin_seats *seats, const struct plugin_use *use, const struct plugin_request *request,
                     struct plugin_reply *ret_reply, struct why *why) {
        return ask_tries(use, find_seat(seats, use->plugin), request, 1, ret_reply, why);
}

const uint8_t *plugin_seats_output(struct plugin_seats *seats, const struct plugin_use *use) {
        return output_of(find_seat(seats, use->plugin));
}

int plugin_use_run(const struct plugin_use *use, struct plugin_seats *seats, const struct plugin_draws *draws,
                   uint8_t *out, struct why *why) {
        struct seat *seat = find_seat(seats, use->plugin);
        struct plugin_request request = use->request;
        struct plugin_reply reply;
        int r = ask_about(use, seat, draws, &request, &reply, why);

        if (r == 0)
                memcpy(out, output_of(seat), request.n_output_bytes);
        return r;
}

/* ---- codecs --------------------------------------------------------------------------------------------------------
 */

/* The bytes are copied each time: between the two questions the memory may have been given back. */
static int ask_codec(const struct plugin_use *use, struct plugin_seats *seats, const struct plugin_draws *draws,
                     const uint8_t *bytes, struct plugin_request *request, struct plugin_reply *reply,
                     struct why *why) {
        int r = reserve_for(use, seats, request->n_input_bytes, request->n_output_bytes, why);

        if (r < 0)
                return r;
        if (request->n_input_bytes > 0)
                memcpy(plugin_use_input(use, seats), bytes, request->n_input_bytes);
        return ask_about(use, find_seat(seats, use->plugin), draws, request, reply, why);
}

int plugin_use_measure(const struct plugin_use *use, struct plugin_seats *seats, const struct plugin_draws *draws,
                       const uint8_t *bytes, size_t n_bytes, struct dlplugin_form *ret_output, struct why *why) {
        struct plugin_request request = use->request;
        struct plugin_reply reply;
        int r;

        request.question = PLUGIN_MEASURE;
        request.n_input_bytes = n_bytes;
        r = ask_codec(use, seats, draws, bytes, &request, &reply, why);
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
        r = ask_codec(use, seats, draws, bytes, &request, &reply, why);
        if (r == 0)
                *ret_elements = output_of(find_seat(seats, use->plugin));
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
        r = reserve_for(use, seats, request.n_input_bytes, request.n_output_bytes, why);
        if (r < 0)
                return r;
        memcpy(plugin_use_input(use, seats), samples, request.n_input_bytes);
        r = ask_about(use, find_seat(seats, use->plugin), draws, &request, &reply, why);
        if (r == 0)
                memcpy(out, output_of(find_seat(seats, use->plugin)), request.n_output_bytes);
        return r;
}

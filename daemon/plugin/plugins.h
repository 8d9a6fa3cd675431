/* plugin/plugins.h: the plug-ins of the configuration, what they offer, and how a worker runs their steps.
 *
 *      plugins            those that the configuration names, loaded or refused; for the life of the daemon
 *        plugin           one of them, and its table: its steps with their arguments
 *          use            a step with values for its arguments and a form for its input: of a codec
 *      seats              what one worker thread needs to run uses: a process each, and the input's memory
 *
 * A plug-in is loaded into processes of its own (plugin_process.h, library.h). dlplugin.h says what a plug-in is.
 *
 * Threads: plugins_new(), plugin_use_new() and their opposites on the main thread, which waits for the plug-in; seats
 * are one worker thread's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/settings.h"
#include "daemon/plugin/plugin_table.h"
#include "proto/base/why.h"

struct cells;
struct plugins;
struct plugin;
struct plugin_use;
struct plugin_seats;

/* Loads those that the settings name; both outlive it, and `cells` are all of the daemon. One that cannot be used is
 * refused, and logged: the others are there. -ENOMEM and the like. */
int plugins_new(const struct settings *settings, struct cells *cells, struct plugins **ret_plugins, struct why *why);

/* No thread waits for a process from now on: what is under way ends with -ECANCELED. Any thread. */
void plugins_stop(struct plugins *plugins);

/* Takes NULL. After all uses and seats. */
void plugins_free(struct plugins *plugins);

/* Plug-ins as another process tells of them: texts that name their steps can be read, and nothing can be run.
 * plugin_use_new() gets the outputs one after the other, so texts are read in the sequence in which they were read
 * there. -ENOMEM. */
int plugins_describe(const struct plugin_table *tables, uint32_t n_tables, const struct dlplugin_form *outputs,
                     uint32_t n_outputs, struct plugins **ret_plugins);

size_t plugins_count(const struct plugins *plugins);
const struct plugin *plugins_at(const struct plugins *plugins, size_t idx);

const char *plugin_name(const struct plugin *plugin);

/* Why it cannot be used, a whole sentence; NULL: it can. */
const char *plugin_refusal(const struct plugin *plugin);

/* NULL: it cannot be used. */
const struct plugin_table *plugin_table(const struct plugin *plugin);

/* The one with this name of n characters. -EINVAL: there is none, or it was refused; `why` says which there are.
 * `plugins` may be NULL. */
int plugins_find(struct plugins *plugins, const char *name, size_t n, struct plugin **ret_plugin, struct why *why);

/* The same for one of its steps. */
int plugin_find_step(const struct plugin *plugin, const char *name, size_t n, uint32_t *ret_idx, struct why *why);

struct plugin_values {
        struct {
                double number;
                char text[DLPLUGIN_TEXT_MAX];
        } values[DLPLUGIN_ARGUMENTS_MAX];
};

/* A step with these values, one for each argument, for such an input; a codec: NULL. -EINVAL: the plug-in says that it
 * is not possible; `why` says why. -ENOMEM. */
int plugin_use_new(struct plugin *plugin, uint32_t idx_step, const struct plugin_values *values,
                   const struct dlplugin_form *input, struct plugin_use **ret_use, struct why *why);

/* Takes NULL. */
void plugin_use_free(struct plugin_use *use);

const struct plugin *plugin_use_plugin(const struct plugin_use *use);

/* What it delivers; a codec for pictures: uint8 [-1, -1, 3]. */
const struct dlplugin_form *plugin_use_output(const struct plugin_use *use);
bool plugin_use_is_picture(const struct plugin_use *use);

/* Bytes of an array. */
uint64_t plugin_form_bytes(const struct dlplugin_form *form);

/* ---- a worker's ----------------------------------------------------------------------------------------------------
 */

/* What the sample's draws depend on. */
struct plugin_draws {
        uint64_t seed, sample;
        uint32_t epoch, place; /* place: of the step among those of its field */
};

/* -ENOMEM. */
int plugin_seats_new(struct plugin_seats **ret_seats);

/* Takes NULL. Ends the processes. */
void plugin_seats_free(struct plugin_seats *seats);

/* The memory that they keep for arrays; gives it back. */
uint64_t plugin_seats_bytes(const struct plugin_seats *seats);
void plugin_seats_trim(struct plugin_seats *seats);

/* CPU time that their processes have taken since this was asked; of a process that several workers use, whoever asks
 * first is told. A system call for each process. */
uint64_t plugin_seats_cpu_ns(struct plugin_seats *seats);

/* Memory for the input and the output of a step; at most that of all that were reserved since the last trim is kept.
 * -ENOMEM. */
int plugin_use_reserve(const struct plugin_use *use, struct plugin_seats *seats, struct why *why);

/* The bytes that it takes; of a codec for stored bytes of this number, and an output of this form. */
uint64_t plugin_use_need(const struct plugin_use *use);
uint64_t plugin_use_need_for(size_t n_bytes, const struct dlplugin_form *output);

/* Of a collation, for a batch of so many samples. */
uint64_t plugin_use_need_of_batch(const struct plugin_use *use, uint32_t n_samples);

/* Where the input of a step is to be put, after the last plugin_use_reserve(). */
uint8_t *plugin_use_input(const struct plugin_use *use, struct plugin_seats *seats);

/* Makes what it delivers of what lies there. A process that ends is started again, twice; -EBADMSG: the plug-in says
 * that the sample is wrong, or its process ended or hung; -ECANCELED: plugins_stop(); -ENOMEM: there is no memory or no
 * process. */
int plugin_use_run(const struct plugin_use *use, struct plugin_seats *seats, const struct plugin_draws *draws,
                   uint8_t *out, struct why *why);

/* The same for codecs, whose input is stored bytes. `ret_output` of a picture gets its size, at least 1 x 1. */
int plugin_use_measure(const struct plugin_use *use, struct plugin_seats *seats, const struct plugin_draws *draws,
                       const uint8_t *bytes, size_t n_bytes, struct dlplugin_form *ret_output, struct why *why);

/* Makes an array of the form `output`. It is valid until the seats are used again; a process may write to it. */
int plugin_use_decode(const struct plugin_use *use, struct plugin_seats *seats, const struct plugin_draws *draws,
                      const uint8_t *bytes, size_t n_bytes, const struct dlplugin_form *output,
                      const uint8_t **ret_elements, struct why *why);

/* The same for a collation: its input are n_samples samples, one after the other, and `out` gets as many rows. It
 * reserves the memory itself. draws->sample is the place of the batch in its epoch. */
int plugin_use_collate(const struct plugin_use *use, struct plugin_seats *seats, const struct plugin_draws *draws,
                       uint32_t n_samples, const uint8_t *samples, uint8_t *out, struct why *why);

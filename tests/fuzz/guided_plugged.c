/* What a plug-in's process that somebody has taken over says: any table of itself, any answers, of any length. This
 * file stands in for base/cell/cell.c: its cells answer what the input says. Whatever is accepted must be possible, and
 * a text that such a table can read must be read again as it is printed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/codec/plugged/plugin_step.h"
#include "daemon/plugin/plugin.h"
#include "daemon/plugin/plugin_messages.h"
#include "daemon/plugin/plugin_scan.h"
#include "daemon/plugin/scan_inside.h"
#include "proto/base/cleanup.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

#define ROOM_MAX (1u << 20) /* of arrays that are really asked for */
#define EDITS    12u
#define HEAD     2048u /* bytes where much is decided: half of the edits are there */

static struct input input;
static struct plugin_table plain; /* what an honest one says */

/* ---- in place of cells ------------------------------------------------------------------------------------------- */

static struct cell_memory lent[2]; /* the last ones */
static uint32_t n_lent;

void cells_init(struct cells *cells, const char *program) {
        *cells = (struct cells){ .program = program };
}

void cells_fini(struct cells *cells) {
        (void)cells;
}

uint64_t cells_number(struct cells *cells) {
        return ++cells->n_memories;
}

void cells_forget(struct cells *cells, uint64_t number) {
        (void)cells;
        (void)number;
}

uint64_t cells_cpu_ns(struct cells *cells) {
        (void)cells;
        return 0;
}

int cells_set_nice(struct cells *cells, int nice) {
        (void)cells;
        return nice > 0 ? 0 : -EINVAL;
}

pid_t cell_pid(const struct cell *cell) {
        return cell ? 1 : 0;
}

uint64_t cell_cpu_ns(struct cell *cell) {
        return cell ? 1 : 0;
}

bool cell_has_failed(int error) {
        return error == -EPIPE || error == -ETIMEDOUT || error == -ECANCELED;
}

int cell_start(struct cell *cell, struct cells *cells, const struct cell_terms *terms, struct why *why) {
        static const int RESULTS[] = { 0, 0, 0, 0, 0, 0, CELL_REFUSES, -EPIPE, -ETIMEDOUT, -EAGAIN };
        int r = RESULTS[input_below(&input, sizeof(RESULTS) / sizeof(RESULTS[0]))];

        (void)cells;
        (void)terms;
        cell->process.pid = r == 0;
        if (r != 0)
                why_set(why, 0, "does not want to");
        return r;
}

void cell_lend(struct cell *cell, const struct cell_memory *memory) {
        (void)cell;
        lent[n_lent++ % 2] = *memory;
}

void cell_end(struct cell *cell) {
        cell->process.pid = 0;
}

int cell_reject(struct cell *cell, struct why *why) {
        cell_end(cell);
        return why_set(why, -EPIPE, "makes no sense");
}

/* A few runs of bytes in it are others. */
static void edit(void *thing, size_t n_bytes) {
        for (uint32_t n = input_below(&input, EDITS); n > 0; n--) {
                size_t head = n_bytes < HEAD ? n_bytes : HEAD, most = input_below(&input, 2) == 0 ? n_bytes : head;
                size_t at = (size_t)(input_word(&input) % most), run = 1 + input_byte(&input);

                memset((uint8_t *)thing + at, input_byte(&input), run < n_bytes - at ? run : n_bytes - at);
        }
}

static void write_output(const struct plugin_order *order, const void *bytes, size_t n) {
        if (order->output.n_bytes < n)
                abort();
        for (uint32_t i = 0; i < 2; i++)
                if (lent[i].number == order->output.memory &&
                    pwrite(lent[i].fd, bytes, n, (off_t)order->output.offset) < 0)
                        _exit(2);
}

static struct dlplugin_form any_form(void) {
        struct dlplugin_form form = { .dtype = input_byte(&input), .n_dims = input_byte(&input) };

        if (input_below(&input, 4) == 0)
                return (struct dlplugin_form){ DLPLUGIN_UINT8, 3, { -1, -1, 3 } };
        for (unsigned i = 0; i < DLPLUGIN_DIMS_MAX; i++)
                form.shape[i] = (int64_t)input_number(&input);
        return form;
}

/* What a format has found: a field and samples, of which a few bytes are others. Returns how many bytes. */
static size_t write_records(const struct plugin_order *asked) {
        struct {
                struct scanned_field field;
                struct {
                        struct scanned_sample sample;
                        struct scanned_cell cells[2];
                        char name[8], value[8];
                } found[2];
        } records;

        memset(&records, 0, sizeof(records));
        records.field.head = (struct scanned_head){ SCANNED_FIELD, sizeof(records.field) };
        strcpy(records.field.name, "image");
        for (int i = 0; i < 2; i++) {
                records.found[i].sample = (struct scanned_sample){ .head = { SCANNED_SAMPLE, sizeof(records.found[i]) },
                                                                   .n_cells = 2,
                                                                   .n_name_bytes = 3 };
                records.found[i].cells[0] = (struct scanned_cell){ 0, 100 };
                records.found[i].cells[1] = (struct scanned_cell){ SCANNED_VALUE, 5 };
                strcpy(records.found[i].name, "ab");
        }
        edit(&records, sizeof(records));
        write_output(asked, &records, sizeof(records));
        return sizeof(records);
}

ssize_t cell_ask(struct cell *cell, void *order, size_t n_order, void *answer, const struct cell_patience *patience,
                 struct why *why) {
        const struct plugin_order *asked = order;
        struct plugin_answer reply = { .head = { .word = CELL_ANSWER } };
        struct plugin_table table = plain;

        (void)patience;
        if (n_order != sizeof(*asked))
                abort();
        if (input_below(&input, 8) == 7) {
                cell_end(cell);
                return why_set(why, -EPIPE, "has ended");
        }
        if (asked->request.question == 0) {
                edit(&table, sizeof(table));
                write_output(asked, &table, sizeof(table));
        } else if (asked->request.question == PLUGIN_SCAN || asked->request.question == PLUGIN_SCAN_MORE) {
                reply.reply.scanned.n_bytes = write_records(asked);
                reply.reply.scanned.n_left = input_below(&input, 2) * reply.reply.scanned.n_bytes;
        } else {
                reply.reply.output = any_form();
                memset(reply.reply.text, 'x', sizeof(reply.reply.text));
        }
        edit(&reply, sizeof(reply));
        memcpy(answer, &reply, sizeof(reply));
        return input_below(&input, 8) == 7 ? (ssize_t)(input_word(&input) % CELL_MESSAGE_MAX) : (ssize_t)sizeof(reply);
}

/* ---- what the daemon makes of it ----------------------------------------------------------------------------------
 */

static int run(struct dlplugin_call *call, const struct dlplugin_form *input_form, const void *from,
               const struct dlplugin_form *output_form, void *output) {
        (void)call;
        (void)input_form;
        (void)from;
        (void)output_form;
        (void)output;
        return 0;
}

static int decode(struct dlplugin_call *call, const void *bytes, size_t n, const struct dlplugin_form *output_form,
                  void *output) {
        (void)bytes;
        (void)n;
        return run(call, output_form, NULL, output_form, output);
}

static int measure(struct dlplugin_call *call, const void *bytes, size_t n, uint32_t *height, uint32_t *width) {
        (void)call;
        (void)bytes;
        (void)n;
        *height = *width = 1;
        return 0;
}

static int scan(struct dlplugin_call *call, struct dlplugin_window *window) {
        (void)call;
        (void)window;
        return 0;
}

static void make_plain(void) {
        static const struct dlplugin_argument ARGUMENTS[] = {
                { .name = "size", .kind = DLPLUGIN_WHOLE, .by_default = "8", .minimum = 1, .maximum = 256 },
                { .name = "color", .kind = DLPLUGIN_CHOICE, .by_default = "both", .choices = "both black white" },
                { .name = "p", .kind = DLPLUGIN_NUMBER },
                { .name = "mode", .kind = DLPLUGIN_TEXT, .by_default = "a-b" },
        };
        static const struct dlplugin_step STEPS[] = {
                { .name = "one", .about = "a step", .arguments = ARGUMENTS, .n_arguments = 4, .run = run },
                { .name = "two", .about = "another", .run = run },
        };
        static const struct dlplugin_codec CODECS[] = {
                { .name = "three", .about = "a codec", .measure = measure, .decode = decode },
        };
        static const struct dlplugin_format FORMATS[] = {
                { .name = "four", .about = "a format", .scan = scan, .endings = ".bin" },
        };
        static const struct dlplugin PLUGIN = {
                DLPLUGIN_HEAD, .name = "p",      .about = "a plug-in", .threads = DLPLUGIN_PARALLEL, .steps = STEPS,
                .n_steps = 2,  .codecs = CODECS, .n_codecs = 1,        .formats = FORMATS,           .n_formats = 1
        };
        struct why why;

        if (plain.name[0] == '\0' && table_describe(&PLUGIN, &plain, &why) < 0)
                abort();
}

static char *print(const struct plugin_step_text *steps, uint32_t n) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        for (uint32_t i = 0; i < n; i++) {
                fputs(i > 0 ? " " : "", stream);
                plugin_step_print(&steps[i], stream);
        }
        fclose(stream);
        return text;
}

static int read_steps(const char *text, struct plugins *plugins,
                      struct plugin_step_text ret_steps[PLUGIN_STEPS_A_FIELD_MAX], uint32_t *ret_n, struct why *why) {
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        struct grammar_steps steps;

        if (grammar_new("pipeline", text, &grammar, why) < 0 ||
            grammar_steps(grammar, grammar_all(grammar), &steps) < 0)
                abort();
        return plugin_steps_read(grammar, steps, plugins, ret_steps, ret_n, why);
}

/* Any text of steps of this table. A bad default is found when a text leaves the argument out. */
static void read_text(const struct plugin_table *table, const char *text) {
        static struct plugin_step_text steps[PLUGIN_STEPS_A_FIELD_MAX], again[PLUGIN_STEPS_A_FIELD_MAX];
        struct plugins *plugins;
        uint32_t n = 0, n_again = 0;
        struct why why = { .text = "" };
        char *printed, *reprinted;

        if (plugins_describe(table, 1, NULL, 0, &plugins) < 0)
                abort();
        if (read_steps(text, plugins, steps, &n, &why) == 0) {
                printed = print(steps, n);
                if (read_steps(printed, plugins, again, &n_again, &why) < 0 || n_again != n)
                        abort();
                reprinted = print(again, n_again);
                if (strcmp(printed, reprinted) != 0)
                        abort();
                free(printed);
                free(reprinted);
        } else if (!why.text[0]) {
                abort();
        }
        plugins_free(plugins);
}

static void use_step(struct plugin_use *use, struct plugin_seats *seats, uint8_t *out) {
        const struct plugin_draws draws = { .seed = 1 };
        struct why why = { .text = "" };
        int r = plugin_use_reserve(use, seats, &why);

        if (r == 0)
                r = plugin_use_run(use, seats, &draws, out, &why);
        if (r < 0 && !why.text[0])
                abort();
}

static void use_codec(struct plugin_use *use, struct plugin_seats *seats) {
        const struct plugin_draws draws = { .seed = 1 };
        struct dlplugin_form form = *plugin_use_output(use);
        const uint8_t *elements;
        struct why why = { .text = "" };
        int r = 0;

        if (plugin_use_is_picture(use))
                r = plugin_use_measure(use, seats, &draws, (const uint8_t *)"bytes", 5, &form, &why);
        if (r == 0 && plugin_use_is_picture(use) &&
            (form.shape[0] < 1 || form.shape[1] < 1 || form.shape[0] > UINT32_MAX || form.shape[1] > UINT32_MAX))
                abort();
        if (r == 0 && (form.shape[0] > 1000 || form.shape[1] > 1000 || plugin_form_bytes(&form) > ROOM_MAX))
                return;
        if (r == 0)
                r = plugin_use_decode(use, seats, &draws, (const uint8_t *)"bytes", 5, &form, &elements, &why);
        if (r == 0)
                for (uint64_t i = 0; i < plugin_form_bytes(&form); i += 1024)
                        (void)*(const volatile uint8_t *)(elements + i);
        if (r < 0 && !why.text[0])
                abort();
}

/* Every byte that is handed on is there. */
static void look_at_added(const struct plugin_added *added) {
        if (added->field[0] != '\0') {
                (void)strnlen(added->field, sizeof(added->field));
                return;
        }
        if (added->n_cells > DLPLUGIN_FIELDS_MAX || (added->name && strlen(added->name) > SCANNED_BYTES_MAX))
                abort();
        for (uint32_t i = 0; i < added->n_cells; i++)
                for (uint64_t k = 0; added->cells[i].value && k < added->cells[i].n_bytes; k++)
                        (void)*(const volatile uint8_t *)(added->cells[i].value + k);
}

static void use_format(struct plugin *plugin, uint32_t idx_format) {
        static const struct plugin_values VALUES;
        const struct plugin_window window = { .n_file_bytes = 5, .n_bytes = 5, .n_files = 1 };
        struct plugin_scan *it;
        struct plugin_added added;
        struct plugin_wish wish;
        struct why why = { .text = "" };
        uint8_t *room;
        int r = plugin_scan_new(plugin, idx_format, &VALUES, &it, &why);

        if (r == 0) {
                room = plugin_scan_room(it, "a.bin", 5, &why);
                r = room ? 0 : -ENOMEM;
                if (room)
                        memcpy(room, "bytes", 5);
                if (r == 0)
                        r = plugin_scan_ask(it, &window, &wish, &why);
                while (r == 0 && (r = plugin_scan_next(it, &added, &why)) > 0) {
                        look_at_added(&added);
                        r = 0;
                }
                plugin_scan_free(it);
        }
        if (r < 0 && !why.text[0])
                abort();
}

static void use_plugin(struct plugin *plugin, uint32_t idx_step) {
        static const struct plugin_values VALUES;
        static const struct dlplugin_form FORM = { DLPLUGIN_UINT8, 3, { 4, 5, 3 } };
        static uint8_t out[ROOM_MAX];
        bool is_codec = plugin->table->steps[idx_step].kind == PLUGIN_CODEC;
        struct plugin_seats *seats;
        struct plugin_use *use;
        struct why why = { .text = "" };

        if (plugin_use_new(plugin, idx_step, &VALUES, is_codec ? NULL : &FORM, &use, &why) < 0) {
                if (!why.text[0])
                        abort();
                return;
        }
        if (!plugin_is_form(plugin_use_output(use)) && !plugin_use_is_picture(use))
                abort();
        if (plugin_seats_new(&seats) < 0)
                abort();
        if (is_codec)
                use_codec(use, seats);
        else if (plugin_form_bytes(plugin_use_output(use)) <= ROOM_MAX)
                use_step(use, seats, out);
        plugin_seats_free(seats);
        plugin_use_free(use);
}

static void use_any(struct plugin *plugin, uint32_t idx_step) {
        if (plugin->table->steps[idx_step].kind == PLUGIN_FORMAT)
                use_format(plugin, idx_step);
        else
                use_plugin(plugin, idx_step);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static _Atomic bool is_stopping;
        struct plugin_table table;
        struct cells cells;
        struct plugin plugin = {
                .name = "p", .path = (char *)"/", .cells = &cells, .timeout_s = 1, .is_stopping = &is_stopping
        };
        struct why why = { .text = "" };
        char text[256];

        make_plain();
        input = (struct input){ data, n_bytes };
        cells_init(&cells, "");
        if (stat("/", &plugin.status) < 0)
                abort();
        if (plugin_describe(&plugin, &plugin.cell, &table, &why) == 0) {
                if (!table_is_valid(&table))
                        abort();
                plugin.table = &table;
                if (table.n_steps > 0)
                        use_any(&plugin, input_below(&input, table.n_steps));
                read_text(&table, input_text(&input, text, sizeof(text)));
        } else if (!why.text[0]) {
                abort();
        }
        cell_end(&plugin.cell);
        return 0;
}

/* dlplugin.h: plug-ins for dataloaderd, in C or whatever can be called from C.
 *
 * A plug-in is a shared library, NAME.so, with a variable of this header in it. It brings steps, codecs and
 * collations, which pipelines name, and formats, which datasets name:
 *
 *      random_resized_crop(224) hflip(0.5) plugin(blocks.mosaic, size=8)
 *      plugin(blocks.unpack) random_resized_crop(224)
 *      center_crop(224) plugin(blocks.centered)
 *      format = "plugin(blocks.album)"
 *
 * A whole plug-in, of which docs/plugins/blocks.c is the long form:
 *
 *      #include <dlplugin.h>
 *
 *      static int invert(struct dlplugin_call *call, const struct dlplugin_form *form, const void *input,
 *                        const struct dlplugin_form *output_form, void *output) {
 *              for (size_t i = 0; i < dlplugin_elements(form); i++)
 *                      ((uint8_t *)output)[i] = 255 - ((const uint8_t *)input)[i];
 *              return 0;
 *      }
 *
 *      static const struct dlplugin_step STEPS[] = { { .name = "invert", .about = "the negative", .run = invert } };
 *
 *      DLPLUGIN_EXPORT const struct dlplugin dlplugin = {
 *              DLPLUGIN_HEAD, .name = "negative", .about = "Negatives of pictures.", .threads = DLPLUGIN_PARALLEL,
 *              .steps = STEPS, .n_steps = 1,
 *      };
 *
 *      $ cc -O2 -fPIC -shared -o negative.so negative.c
 *      # install -o root -m 644 negative.so /usr/lib/dataloaderd/plugins/
 *
 * and in dataloaderd.conf:  plugins = "negative"
 *
 * Loading. The administrator names plug-ins and the folders in which they lie; no pipeline and no client can have
 * another file loaded. Folder and file must belong to root or to the daemon's user, and nobody else may be able to
 * write to them. A plug-in that cannot be used is refused with a sentence when the daemon starts, which goes on without
 * it; a job whose pipeline or dataset names it gets that sentence.
 *
 * Where it runs. In processes of its own beside the daemon: one that crashes, hangs or exits costs the sample that it
 * had. It runs as the daemon's user, with no terminal; its standard output goes nowhere, its standard error to the
 * daemon's log.
 *
 * Versions. DLPLUGIN_HEAD notes the version of this header and the size of the struct. A newer daemon takes plug-ins
 * of all older versions as they are, without compiling them again. An older daemon refuses a newer plug-in. What a
 * version adds is marked "since version N".
 *
 * Rules for every function of a plug-in:
 *
 *   - It returns 0, or what call->fail() returns. Then the sample is damaged, or the job refused, with that sentence.
 *   - It keeps nothing of its arguments after it has returned.
 *   - It draws random numbers from the call alone, so that a sample is the same in each epoch, on each machine, and
 *     however many workers there are.
 *   - It must not change signal handlers, standard descriptors or the working directory, and must not call exit().
 *   - It reports nothing but by call->fail(); it needs no global variables.
 */
#ifndef DLPLUGIN_H
#define DLPLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLPLUGIN_VERSION 3u

#define DLPLUGIN_NAME_MAX      32u  /* bytes with NUL: of plug-ins, steps and arguments. Letters, digits, "_" */
#define DLPLUGIN_TEXT_MAX      160u /* bytes with NUL: of what is said about them, and of values */
#define DLPLUGIN_STEPS_MAX     32u  /* of steps, codecs, formats and collations together */
#define DLPLUGIN_ARGUMENTS_MAX 8u
#define DLPLUGIN_DIMS_MAX      8u
#define DLPLUGIN_FIELDS_MAX    64u         /* of a format's samples */
#define DLPLUGIN_WINDOW_MAX    (64u << 20) /* bytes of a file that a format gets at once */

#define DLPLUGIN_EXPORT __attribute__((visibility("default")))
#define DLPLUGIN_HEAD   .version = DLPLUGIN_VERSION, .size = sizeof(struct dlplugin)

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

enum dlplugin_dtype {
        DLPLUGIN_UINT8 = 1,
        DLPLUGIN_INT8,
        DLPLUGIN_UINT16,
        DLPLUGIN_INT16,
        DLPLUGIN_UINT32,
        DLPLUGIN_INT32,
        DLPLUGIN_UINT64,
        DLPLUGIN_INT64,
        DLPLUGIN_FLOAT16,  /* IEEE 754, two bytes */
        DLPLUGIN_BFLOAT16, /* the upper half of a float32 */
        DLPLUGIN_FLOAT32,
        DLPLUGIN_FLOAT64,
        DLPLUGIN_BOOL /* one byte: 0 or 1 */
};

/* What is known of an array before its elements are. Elements are in the machine's byte order and follow one another
 * without gaps, the last dimension fastest; an array begins at a multiple of 64 bytes. A picture is uint8 [height,
 * width, 3], red first; after to(...), normalize(...) or layout(chw) it has the type and layout that these steps say.
 */
struct dlplugin_form {
        uint32_t dtype;  /* enum dlplugin_dtype */
        uint32_t n_dims; /* 0: one number */
        int64_t shape[DLPLUGIN_DIMS_MAX];
};

/* The number of elements. */
static inline size_t dlplugin_elements(const struct dlplugin_form *form) {
        size_t n = 1;
        uint32_t i;

        for (i = 0; i < form->n_dims; i++)
                n *= (size_t)form->shape[i];
        return n;
}

/* ---- arguments -------------------------------------------------------------------------------------------------- */

enum dlplugin_kind {
        DLPLUGIN_NUMBER = 1, /* 0.5 */
        DLPLUGIN_WHOLE,      /* 8; up to 2^53 */
        DLPLUGIN_CHOICE,     /* one of `choices` */
        DLPLUGIN_TEXT        /* a word of letters, digits and "_", "-", "." */
};

/* An argument of a step. The daemon reads, checks and prints it, so that mistakes get the same messages as in its own
 * steps, and a step is only ever called with values that are allowed here. In a pipeline arguments are positional in
 * the sequence of this table, or named: mosaic(8) or mosaic(size=8). */
struct dlplugin_argument {
        const char *name;
        uint32_t kind;           /* enum dlplugin_kind */
        uint32_t zero;           /* 0 */
        const char *by_default;  /* as it would be written; NULL: it must be given */
        double minimum, maximum; /* of numbers, both included; both 0: any */
        const char *choices;     /* of DLPLUGIN_CHOICE: the words, with blanks between them */
        const void *later[4];    /* NULL */
};

/* Its value. */
struct dlplugin_value {
        double number;    /* of a choice: its index, from 0 */
        const char *text; /* as it was written */
};

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* What a function of a plug-in gets to know. The daemon makes it; it is valid until the function returns. */
struct dlplugin_call {
        uint32_t version; /* of the daemon's dlplugin.h: that of the plug-in or a later one */
        uint32_t epoch;
        uint64_t sample; /* its number in the dataset; of a batch: the place of its first sample in the epoch's order */

        void *plugin; /* what open() gave; else NULL */
        void *worker; /* what worker_open() gave; else NULL */
        void *state;  /* what settle() gave; else NULL */

        const struct dlplugin_value *values; /* of the step's arguments, in the sequence of its table */

        /* Says what is wrong, as printf() would: a part of a sentence about the sample, "has 3 corners, 4 are needed".
         * The first call counts. Returns a negative number, for the function to return. */
        int (*fail)(struct dlplugin_call *call, const char *format, ...)
#ifdef __GNUC__
                __attribute__((format(printf, 2, 3)))
#endif
                ;

        /* Random numbers that belong to (seed of the job, epoch, sample, place of the step in the pipeline): 32 random
         * bits, and a number in [0, 1) with 53 random bits, which takes two of the former. In run() only; elsewhere
         * they are the same each time. */
        uint32_t (*random_bits)(struct dlplugin_call *call);
        double (*random)(struct dlplugin_call *call);

        void *daemon; /* the daemon's own */
};

/* ---- steps ------------------------------------------------------------------------------------------------------ */

/* A step makes another array of an array. It stands after the daemon's own steps of its field, several of them one
 * after the other:
 *
 *      image: center_crop(224) to(float32) plugin(NAME.STEP, ARGUMENT, KEY=VALUE) plugin(OTHER.STEP)
 *
 * Its input is what the field would deliver without it. All samples of the field must have one shape before it: a
 * batch's memory is reserved before its samples are read. */
struct dlplugin_step {
        const char *name;
        const char *about; /* one line */
        const struct dlplugin_argument *arguments;
        uint32_t n_arguments;
        uint32_t zero; /* 0 */

        /* Is this step possible with these values, for such an input? *output is a copy of *input; a step that delivers
         * another type or shape changes it; each dimension is at least 1. May prepare what run() needs, a table for
         * instance, and leave it in *state. It is called when a client attaches and again by each worker, more than
         * once for one pipeline, and should take a few milliseconds at most. NULL: always possible, the form stays. */
        int (*settle)(struct dlplugin_call *call, const struct dlplugin_form *input, struct dlplugin_form *output,
                      void **state);

        /* Frees the state. NULL: there is nothing to free. */
        void (*forget)(void *state);

        /* Makes all elements of `output` from `input`, which do not overlap. Nothing in `output` is valid before. */
        int (*run)(struct dlplugin_call *call, const struct dlplugin_form *input_form, const void *input,
                   const struct dlplugin_form *output_form, void *output);
};

/* ---- codecs, since version 2 ------------------------------------------------------------------------------------- */

/* A codec makes an array of the bytes of a field, as they are stored. It stands first in its part:
 *
 *      image: plugin(NAME.CODEC, ARGUMENT) random_resized_crop(224) hflip(0.5)       of a codec for pictures
 *      volume: plugin(NAME.CODEC) plugin(NAME.STEP)                                  of one for arrays of one shape
 *
 * A codec for pictures delivers uint8 [height, width, 3], each file in its own size; the daemon's steps for pictures
 * then do what they do to all others. An array of any other form has the same shape in all samples. */
struct dlplugin_codec {
        const char *name; /* no step has it */
        const char *about;
        const struct dlplugin_argument *arguments;
        uint32_t n_arguments;
        uint32_t zero; /* 0 */

        /* What does it deliver, with these values? The rest as for a step. *output is uint8 [-1, -1, 3], a picture of
         * any size; a codec for arrays changes it, to dimensions of at least 1. NULL: pictures. */
        int (*settle)(struct dlplugin_call *call, struct dlplugin_form *output, void **state);

        void (*forget)(void *state);

        /* Of pictures: finds height and width in the bytes, quickly: crops are drawn and memory is reserved before
         * anything is decoded. Arrays: NULL. */
        int (*measure)(struct dlplugin_call *call, const void *bytes, size_t n_bytes, uint32_t *height,
                       uint32_t *width);

        /* Makes all elements. The process may be another one than that which measured the file; if the file has
         * another size than output_form, it fails. The bytes are a stranger's: anything may be in them. */
        int (*decode)(struct dlplugin_call *call, const void *bytes, size_t n_bytes,
                      const struct dlplugin_form *output_form, void *output);
};

/* ---- formats, since version 3 ------------------------------------------------------------------------------------ */

/* A format says what is in the files of a dataset:
 *
 *      [dataset photos]
 *      path = "/data/photos"
 *      format = "plugin(NAME.FORMAT, ARGUMENT)"
 *
 * It is asked when the dataset is indexed, and never again: it says which fields the samples have and where in the
 * files their bytes lie, and all that follows is the daemon's own: order, reading, decoding, worlds, resuming. Short
 * values may be given instead of a place. They are then part of the index.
 *
 * It gets the bytes of the files, one window after the other, and no path and no descriptor. What it says is checked as
 * a stranger's word. A dataset that is indexed by a plug-in which fails, crashes or hangs cannot be used; its sentence
 * says at which byte of which file. The index is made anew when a file of the dataset, the arguments or the plug-in
 * have changed. */

enum dlplugin_field_kind {
        DLPLUGIN_FIELD_PICTURE = 1, /* a file of a picture, of any kind that the daemon or a codec decodes */
        DLPLUGIN_FIELD_SOUND,       /* likewise */
        DLPLUGIN_FIELD_TEXT,        /* UTF-8 without NUL */
        DLPLUGIN_FIELD_BYTES,       /* anything */
        DLPLUGIN_FIELD_ARRAY        /* elements, low byte first, the last dimension fastest */
};

/* Flags of a field. */
#define DLPLUGIN_FIELD_IS_VALUE      1u /* text, bytes, array: given with each sample; else it lies in the file */
#define DLPLUGIN_FIELD_MAY_BE_ABSENT 2u /* some samples do not have it */
#define DLPLUGIN_FIELD_BIG_ENDIAN    4u /* array in the file: high byte first */

struct dlplugin_field {
        const char *name; /* of at most 31 bytes; different from those of the other fields. Numbers called "label" are
                           * what pipelines expect under this name */
        uint32_t kind;    /* enum dlplugin_field_kind */
        uint32_t flags;
        struct dlplugin_form form; /* of arrays: of each sample; each dimension is at least 1, or the first is
                                    * -1: it varies */
};

/* A field of a sample. */
struct dlplugin_cell {
        uint64_t offset;   /* in the file; DLPLUGIN_ABSENT: the sample does not have it */
        uint64_t n_bytes;  /* of an array: whole rows, or all of them */
        const void *value; /* of DLPLUGIN_FIELD_IS_VALUE: these bytes, which are copied; the offset does not count */
};

#define DLPLUGIN_ABSENT UINT64_MAX

/* A part of a file. The daemon makes it; it is valid until scan() returns. */
struct dlplugin_window {
        const char *file; /* its name in the dataset's folder, for what a format makes of names */
        uint32_t idx_file, n_files;
        uint64_t n_file_bytes;

        const void *bytes; /* those from `offset` on; 0 of an empty file. They begin at a multiple of 64 */
        uint64_t offset, n_bytes;

        /* What scan() wants next: the first byte, and how many at least. It gets as many unless the file ends before.
         * As it is called these are the byte after the window, and 0: any number, a mebibyte or so. A record that is
         * not whole begins the next window. n_file_bytes or more: this file is done, the next one follows. To go back
         * and forth is allowed, as long as all windows of a file are not much more than the file. */
        uint64_t next_offset, n_wanted;

        /* Adds a field: for the first file (idx_file 0), before its first sample. All samples have the same fields.
         * One that cannot be served is left out by the daemon; samples have a cell for it all the same. */
        int (*add_field)(struct dlplugin_call *call, const struct dlplugin_field *field);

        /* Adds a sample of this file, whose cells are as many as there are fields, in their sequence. Samples of the
         * dataset are in the sequence in which they are added, file after file. `name`: for messages and the ledger,
         * printable, as a path in a folder: "cats/7"; either all samples have one, or none, which are called FILE:7
         * then.
         *
         * Both functions return 0; or a negative number after they have called call->fail(), which scan() returns. */
        int (*add_sample)(struct dlplugin_call *call, const char *name, const struct dlplugin_cell *cells,
                          uint32_t n_cells);
};

struct dlplugin_format {
        const char *name; /* no step and no codec has it */
        const char *about;
        const struct dlplugin_argument *arguments;
        uint32_t n_arguments;
        uint32_t zero; /* 0 */

        /* Of a dataset that is a folder: the files that belong to it, by what their names end with, with blanks
         * between: ".alb .album". NULL: all but those that begin with ".". They are read in the order of their names'
         * bytes; folders in the folder are not looked into. A path that names files is read as it says. */
        const char *endings;

        /* Is it possible with these values? May leave in *state what scan() needs; here scan() may also keep what it
         * has learnt from one window, or one file, to the next. NULL: always possible. */
        int (*settle)(struct dlplugin_call *call, void **state);

        void (*forget)(void *state);

        /* Looks at the window; adds what it finds; says what it wants next. It is called at least once for each file,
         * by one thread, in a process or worker of its own, and has plugin_timeout for each window. A window has up to
         * DLPLUGIN_WINDOW_MAX bytes. A file cannot have more samples than bytes. */
        int (*scan)(struct dlplugin_call *call, struct dlplugin_window *window);
};

/* ---- collations, since version 3 --------------------------------------------------------------------------------- */

/* A collation makes the tensor of a batch of all its samples. It stands last in a part that names one field, where the
 * daemon's pad or mixup would stand; only views may follow it:
 *
 *      image: center_crop(224) plugin(NAME.COLLATION, ARGUMENT)
 *
 * It gets the samples of a batch in one array, [n, ...], in the batch's order, and makes one of as many rows. All
 * samples have one form, and all rows have one. n is the batch size or less: of the last batch of an epoch, and where
 * damaged samples are left out. It is called once for each batch, when all samples of the batch are there, and never
 * for a batch without samples. If it fails, crashes or hangs, the job ends with its sentence: there is no other batch
 * to take.
 *
 * Both arrays of the largest batch must fit into a quarter of memory_limit, 1 GiB at most; else the job is refused. */
struct dlplugin_collation {
        const char *name; /* no step, no codec and no format has it */
        const char *about;
        const struct dlplugin_argument *arguments;
        uint32_t n_arguments;
        uint32_t zero; /* 0 */

        /* Is it possible with these values, for such samples? *row is a copy of *sample; a collation whose rows have
         * another type or shape changes it. The rest as for a step. */
        int (*settle)(struct dlplugin_call *call, const struct dlplugin_form *sample, struct dlplugin_form *row,
                      void **state);

        void (*forget)(void *state);

        /* Makes all elements of `output`, [n, row...], from `input`, [n, sample...]: input_form->shape[0] is n. What it
         * draws belongs to the batch: call->sample is the place of its first sample in the epoch's order. */
        int (*collate)(struct dlplugin_call *call, const struct dlplugin_form *input_form, const void *input,
                       const struct dlplugin_form *output_form, void *output);
};

/* ---- the plug-in ------------------------------------------------------------------------------------------------ */

enum dlplugin_threads {
        /* Any number of threads may be in its functions at once. The best, and what most plug-ins are by themselves:
         * functions that only use what they are given. */
        DLPLUGIN_PARALLEL = 1,

        /* At any moment one thread at most is in its functions; all steps of all samples run in one process, one after
         * the other. (Other processes may settle() steps and scan() files meanwhile.) For libraries that cannot do
         * otherwise: all workers wait for each other. */
        DLPLUGIN_SERIAL,

        /* Each worker has a state of its own, made by worker_open(), that no other thread uses at the same time: for
         * libraries that need a handle a thread. */
        DLPLUGIN_PER_WORKER
};

struct dlplugin {
        uint32_t version, size; /* DLPLUGIN_HEAD */
        const char *name;       /* of the file, without .so */
        const char *about;      /* one line; for `dlctl status` */
        uint32_t threads;       /* enum dlplugin_threads */
        uint32_t n_steps;
        const struct dlplugin_step *steps;

        /* Called once in each process that the plug-in is loaded into, before all else; NULL: nothing to do. What it
         * leaves in *plugin is call->plugin from then on. If it fails, the plug-in is refused. */
        int (*open)(struct dlplugin_call *call, void **plugin);
        void (*close)(void *plugin); /* after all else; perhaps never */

        /* DLPLUGIN_PER_WORKER: called by each worker before its first step; the result is call->worker. */
        int (*worker_open)(struct dlplugin_call *call, void **worker);
        void (*worker_close)(void *worker);

        /* Since version 2. */
        const struct dlplugin_codec *codecs;
        uint32_t n_codecs;
        uint32_t zero; /* 0 */

        /* Since version 3. */
        const struct dlplugin_format *formats;
        uint32_t n_formats;
        uint32_t n_collations;
        const struct dlplugin_collation *collations;
};

/* The one symbol of a plug-in: the name under which the daemon looks for it. */
extern DLPLUGIN_EXPORT const struct dlplugin dlplugin;

#ifdef __cplusplus
}
#endif

#endif

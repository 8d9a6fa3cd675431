#include "daemon/codec/steps/sound_steps.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/step_text.h"
#include "proto/base/typed.h"

#define RATE_MIN        1000.0
#define RATE_MAX        192000.0
#define SECONDS_MIN     0.001
#define SECONDS_MAX     86400.0
#define SECONDS_DEFAULT 30.0
#define NUMBER_TEXT_MAX 32u

static const char *const CROPS[N_SOUND_CROPS] = { "random", "center", "start" };
static const char *const BOOLS[] = { "false", "true" };
static const char *const DTYPES[] = { "float32", "int16" };

bool sound_steps_are(const char *text) {
        text += strspn(text, " \t\r\n");
        return word_is(text, word_length(text), "audio");
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static size_t sound_steps_value_length(const char *text) {
        return strcspn(text, ",) \t\r\n");
}

static int sound_steps_refuse_value(const struct step_text *reader, const char *expected) {
        size_t n = sound_steps_value_length(reader->at);

        return why_set(reader->why, -EINVAL, "pipeline, column %zu: \"%.*s\" is not allowed here; expected %s",
                       step_text_column(reader, reader->at), word_shown(n), reader->at, expected);
}

static int sound_steps_read_number(struct step_text *reader, double minimum, double maximum, const char *expected,
                                   double *ret_number) {
        size_t n = sound_steps_value_length(reader->at);
        char copy[NUMBER_TEXT_MAX], *end;
        double number;

        if (n == 0 || n >= sizeof(copy) || strspn(reader->at, "0123456789.") < n)
                return sound_steps_refuse_value(reader, expected);
        memcpy(copy, reader->at, n);
        copy[n] = '\0';
        number = strtod(copy, &end);
        if (*end || !(number >= minimum && number <= maximum))
                return sound_steps_refuse_value(reader, expected);
        reader->at += n;
        *ret_number = number;
        return 0;
}

static int sound_steps_read_choice(struct step_text *reader, const char *const *names, unsigned n_names,
                                   const char *expected, unsigned *ret_choice) {
        size_t n = sound_steps_value_length(reader->at), i = typed_find(reader->at, n, names, n_names);
        struct nearest nearest;

        if (i < n_names) {
                *ret_choice = (unsigned)i;
                reader->at += n;
                return 0;
        }
        return why_set(reader->why, -EINVAL, "pipeline, column %zu: \"%.*s\" is not allowed here%s; expected %s",
                       step_text_column(reader, reader->at), word_shown(n), reader->at,
                       nearest_in(&nearest, reader->at, n, expected), expected);
}

static int sound_steps_read_column(struct step_text *reader, char *ret_name) {
        size_t n = sound_steps_value_length(reader->at);

        if (n == 0 || n >= DLP_TENSOR_NAME_MAX || strspn(reader->at, "0123456789.-+") == n)
                return sound_steps_refuse_value(reader, "the name of a column of the dataset");
        memcpy(ret_name, reader->at, n);
        ret_name[n] = '\0';
        reader->at += n;
        return 0;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

enum argument {
        START,
        DURATION,
        RATE,
        MONO,
        SECONDS,
        CROP,
        MAX_SECONDS,
        DTYPE,
        N_ARGUMENTS
};

static const char *const NAMES[N_ARGUMENTS] = { "start",   "duration", "rate",        "mono",
                                                "seconds", "crop",     "max_seconds", "dtype" };

static int sound_steps_read_value(struct step_text *reader, unsigned idx, struct sound_steps *steps) {
        static const char SECONDS_TEXT[] = "seconds, 0.001 to 86400";
        unsigned choice = 0;
        double number = 0;
        int r;

        switch (idx) {
        case START:
                steps->starts_at_zero = sound_steps_value_length(reader->at) == 1 && *reader->at == '0';
                reader->at += steps->starts_at_zero;
                return steps->starts_at_zero ? 0 : sound_steps_read_column(reader, steps->start);
        case DURATION:
                return sound_steps_read_column(reader, steps->duration);
        case RATE:
                r = sound_steps_read_number(reader, RATE_MIN, RATE_MAX, "a whole number from 1000 to 192000", &number);
                if (r == 0 && number != floor(number))
                        return sound_steps_refuse_value(reader, "a whole number from 1000 to 192000");
                steps->rate = (uint32_t)number;
                return r;
        case MONO:
                r = sound_steps_read_choice(reader, BOOLS, 2, "true or false", &choice);
                steps->is_mono = choice;
                return r;
        case SECONDS:
                return sound_steps_read_number(reader, SECONDS_MIN, SECONDS_MAX, SECONDS_TEXT, &steps->seconds);
        case CROP:
                r = sound_steps_read_choice(reader, CROPS, N_SOUND_CROPS, "random, center or start", &choice);
                steps->crop = (enum sound_crop)choice;
                return r;
        case MAX_SECONDS:
                return sound_steps_read_number(reader, SECONDS_MIN, SECONDS_MAX, SECONDS_TEXT, &steps->max_seconds);
        default:
                r = sound_steps_read_choice(reader, DTYPES, 2, "float32 or int16", &choice);
                steps->is_int16 = choice;
                return r;
        }
}

static int sound_steps_refuse_key(const struct step_text *reader, size_t n) {
        static const char KEYS[] = "start, duration, rate, mono, seconds, crop, max_seconds, dtype";
        struct nearest nearest;

        return why_set(reader->why, -EINVAL, "pipeline, column %zu: audio has no argument \"%.*s\"%s; it has %s",
                       step_text_column(reader, reader->at), word_shown(n), reader->at,
                       nearest_in(&nearest, reader->at, n, KEYS), KEYS);
}

static int sound_steps_read_argument(struct step_text *reader, struct sound_steps *steps, unsigned *seen) {
        size_t n = word_length(reader->at);
        unsigned i = 0;

        while (i < N_ARGUMENTS && !word_is(reader->at, n, NAMES[i]))
                i++;
        if (i == N_ARGUMENTS && n > 0 && reader->at[n] == '=')
                return sound_steps_refuse_key(reader, n);
        if (i == N_ARGUMENTS || *seen & 1u << i || reader->at[n] != '=')
                return step_text_refuse_here(reader,
                                             "start=, duration=, rate=, mono=, seconds=, crop=, max_seconds= or "
                                             "dtype=, each at most once");
        *seen |= 1u << i;
        reader->at += n + 1;
        return sound_steps_read_value(reader, i, steps);
}

static int sound_steps_read_arguments(struct step_text *reader, struct sound_steps *steps, unsigned *seen) {
        int r = *reader->at == '(' ? step_text_enter(reader) : 0;

        while (r > 0) {
                r = sound_steps_read_argument(reader, steps, seen);
                if (r == 0)
                        r = step_text_after_argument(reader);
        }
        return r;
}

int sound_steps_parse(const char *text, struct sound_steps *ret_steps, size_t *ret_end, struct why *why) {
        struct step_text reader = { .what = "pipeline", .text = text, .at = text, .why = why };
        struct sound_steps steps = { .is_mono = true, .max_seconds = SECONDS_DEFAULT };
        unsigned seen = 0;
        int r;

        step_text_skip_blanks(&reader);
        reader.at += word_length(reader.at);
        r = sound_steps_read_arguments(&reader, &steps, &seen);
        if (r < 0)
                return r;
        if (steps.seconds > 0 && steps.rate == 0)
                return why_set(why, -EINVAL,
                               "pipeline: audio(seconds=...) needs rate=..., so that all samples have "
                               "the same number of frames");
        if (seen & 1u << CROP && steps.seconds == 0)
                return why_set(why, -EINVAL, "pipeline: audio(crop=...) needs seconds=...");
        if (seen & 1u << MAX_SECONDS && steps.seconds > 0)
                return why_set(why, -EINVAL, "pipeline: audio(...): use either seconds= or max_seconds=");
        if (steps.seconds > 0 && rint(steps.seconds * steps.rate) < 1)
                return why_set(why, -EINVAL, "pipeline: audio(...): rate * seconds is less than one frame");
        *ret_steps = steps;
        *ret_end = (size_t)(reader.at - text);
        return 0;
}

char *sound_steps_text(const struct sound_steps *steps) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        fputs("audio(", stream);
        if (steps->start[0] || steps->starts_at_zero)
                fprintf(stream, "start=%s, ", steps->starts_at_zero ? "0" : steps->start);
        if (steps->duration[0])
                fprintf(stream, "duration=%s, ", steps->duration);
        if (steps->rate > 0)
                fprintf(stream, "rate=%u, ", steps->rate);
        fprintf(stream, "mono=%s, ", BOOLS[steps->is_mono]);
        if (steps->seconds > 0)
                fprintf(stream, "seconds=%.15g, crop=%s, ", steps->seconds, CROPS[steps->crop]);
        else
                fprintf(stream, "max_seconds=%.15g, ", steps->max_seconds);
        fprintf(stream, "dtype=%s)", DTYPES[steps->is_int16]);
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

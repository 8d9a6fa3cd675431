#include "daemon/codec/steps/sound_steps.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/steps/field_steps.h"
#include "proto/text/step_values.h"

enum {
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

static const char *const CROPS[N_SOUND_CROPS] = { "random", "center", "start" };
static const char *const BOOLS[] = { "false", "true" };
static const char *const DTYPES[] = { "float32", "int16" };

const struct kind field_step_audio = {
        .name = "audio",
        .doc = "Decodes sound: WAV, FLAC, Ogg (Vorbis and Opus) and MP3, told by the first bytes, of fields of "
               "sound or bytes. The samples are those of python-soundfile as float32: whole numbers of b bits are "
               "divided by 2^(b-1), floats are unchanged. With `dtype=int16` they are multiplied by 32768, rounded, "
               "and limited to 16 bits. `mono=true` delivers the mean of all channels; `mono=false` needs sounds of "
               "two channels and delivers frames x 2. `rate` is 1000 to 192000 frames a second (libsamplerate, "
               "medium quality); without it, each sound keeps its own rate.\n\n"
               "Without `seconds`, each sound has its own length, at most `max_seconds` (at 48000 frames a second, "
               "if there is no `rate`); a longer one is a damaged sample. With `seconds`, which needs `rate`, every "
               "sample has rate x seconds frames: a longer sound is cropped (`crop` is random, center or start), a "
               "shorter one is padded with zeroes at its end. The crop is chosen in frames of the file, and only "
               "these are resampled.\n\n"
               "`start` and `duration` name columns of numbers that say which seconds of its file a sample is, as "
               "manifests of long recordings have them (`audio(start=offset, duration=duration)`): frames are "
               "rounded to the nearest one. A part that does not lie in its file is a damaged sample; one that ends "
               "at most 0.1 s after the file, as manifests round, ends with it. If the dataset has a column of "
               "numbers `offset` and the step does not say `start`, the job is refused, because every row would be "
               "the beginning of its file; `start=0` says that this is meant.\n\n"
               "Of a plain WAV file of more than 256 KiB only its first bytes and the sample's part are read; all "
               "other files are read as a whole, for each sample. WAV and FLAC are decoded from the first frame "
               "that is needed; Ogg and MP3 from their beginning, because they do not seek exactly. Damaged samples "
               "are: a WAV or FLAC that is cut short, a file with more than 8 channels, one that does not say how "
               "long it is (but a WAV from a pipe, which ends with the file), and what the libraries cannot decode. "
               "Ogg and MP3 that were cut between two pages or frames are shorter sounds, because nothing in them "
               "says how long they were. libmpg123 writes about damaged MP3 to the daemon's standard error; this "
               "cannot be switched off. Without a step, the field delivers its stored bytes. Steps for sound may "
               "follow.",
        .like = "torchaudio.load, torchaudio.transforms.Resample",
        .example = "audio(rate=16000)",
        .gives = "a wave",
        .arguments = ARGUMENTS([START] = { ARGUMENT_COLUMN, "start", .is_optional = true, .needs_key = true },
                               [DURATION] = { ARGUMENT_COLUMN, "duration", .is_optional = true, .needs_key = true },
                               [RATE] = { ARGUMENT_LIST, "rate", NULL, 1000, 192000, .counts = 1u << 1,
                                          .is_whole = true, .form = "N", .is_optional = true, .needs_key = true },
                               [MONO] = { ARGUMENT_FLAG, "mono", "true", .needs_key = true },
                               [SECONDS] = { ARGUMENT_NUMBER, "seconds", NULL, 0.001, 86400, .is_optional = true,
                                             .needs_key = true },
                               [CROP] = { ARGUMENT_CHOICE, "crop", "random", .choices = CROPS,
                                          .n_choices = N_SOUND_CROPS, .needs_key = true },
                               [MAX_SECONDS] = { ARGUMENT_NUMBER, "max_seconds", "30", 0.001, 86400,
                                                 .needs_key = true },
                               [DTYPE] = { ARGUMENT_CHOICE, "dtype", "float32", .choices = DTYPES, .n_choices = 2,
                                           .needs_key = true }),
};
static const struct kind_family FIRST_SOUND_STEPS = { .noun = "first step for sound" };

bool sound_steps_are(const struct grammar_step *step) {
        return grammar_is(step->name, field_step_audio.name);
}

/* A column is not called by a number. */
static int keep_column(struct grammar *grammar, const struct value *value, char ret_name[DLP_TENSOR_NAME_MAX],
                       struct why *why) {
        if (!value->is_set)
                return 0;
        if (strlen(value->text) >= DLP_TENSOR_NAME_MAX || value->text[strspn(value->text, "0123456789.-+")] == '\0')
                return grammar_refuse(grammar, value->written.at, why,
                                      "\"%.*s\" is not allowed here; expected the name of a column of the dataset",
                                      grammar_shown(value->written), value->text);
        strcpy(ret_name, value->text);
        return 0;
}

static int sound_steps_check(const struct sound_steps *steps, const struct value *values, struct why *why) {
        if (steps->seconds > 0 && steps->rate == 0)
                return why_set(why, -EINVAL,
                               "pipeline: audio(seconds=...) needs rate=..., so that all samples have "
                               "the same number of frames");
        if (values[CROP].is_given && steps->seconds == 0)
                return why_set(why, -EINVAL, "pipeline: audio(crop=...) needs seconds=...");
        if (values[MAX_SECONDS].is_given && steps->seconds > 0)
                return why_set(why, -EINVAL, "pipeline: audio(...): use either seconds= or max_seconds=");
        if (steps->seconds > 0 && rint(steps->seconds * steps->rate) < 1)
                return why_set(why, -EINVAL, "pipeline: audio(...): rate * seconds is less than one frame");
        return 0;
}

int sound_steps_read(struct grammar *grammar, const struct grammar_step *step, struct sound_steps *ret_steps,
                     struct why *why) {
        _Alignas(8) uint8_t memory[VALUE_STORE_BYTES(DLP_PIPELINE_MAX, 1)];
        struct value_store store = { memory, sizeof(memory) };
        const struct values_reader reader = { &FIRST_SOUND_STEPS, grammar, &store, why };
        struct value values[N_ARGUMENTS];
        struct sound_steps steps = { 0 };
        int r = values_read(&reader, &field_step_audio, step, values);

        if (r < 0)
                return r;
        steps.starts_at_zero = values[START].is_set && strcmp(values[START].text, "0") == 0;
        steps.rate = values[RATE].is_set ? (uint32_t)values[RATE].list[0] : 0;
        steps.is_mono = values[MONO].flag;
        steps.is_int16 = values[DTYPE].choice == 1;
        steps.seconds = values[SECONDS].number;
        steps.max_seconds = values[MAX_SECONDS].number;
        steps.crop = (enum sound_crop)values[CROP].choice;
        if (!steps.starts_at_zero)
                r = keep_column(grammar, &values[START], steps.start, why);
        if (r == 0)
                r = keep_column(grammar, &values[DURATION], steps.duration, why);
        if (r == 0)
                r = sound_steps_check(&steps, values, why);
        if (r == 0)
                *ret_steps = steps;
        return r;
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

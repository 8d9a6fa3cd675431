#include "daemon/augment/torchvision.h"

#include "proto/base/cleanup.h"
#include "proto/base/step_text.h"
#include "proto/base/typed.h"

struct row {
        const char *name, *text;
};

/* ImageCompression is of Albumentations. */
static const struct row STEP_NAMES[] = {
        { "RandomHorizontalFlip", "hflip" }, { "HorizontalFlip", "hflip" },
        { "RandomVerticalFlip", "vflip" },   { "VerticalFlip", "vflip" },
        { "RandomInvert", "invert" },        { "RandomPosterize", "posterize" },
        { "RandomSolarize", "solarize" },    { "RandomAutocontrast", "autocontrast" },
        { "RandomEqualize", "equalize" },    { "RandomAdjustSharpness", "sharpness" },
        { "RandomErasing", "erasing" },      { "ElasticTransform", "elastic" },
        { "ImageCompression", "jpeg" },      { "ToDtype", "to" },
        { "ConvertImageDtype", "to" },       { "SanitizeBoundingBoxes", "sanitize" },
};

static const struct row STEP_TEXTS[] = {
        { "ToTensor", "to(float32) layout(nchw)" },
        { "PILToTensor", "layout(nchw)" },
};

#define IN_TRAINER                                                                                                     \
        "is not a step here; do it with the batch in the trainer, where torchvision.transforms.v2 has it for the GPU"

/* Steps of a batch, not of a picture (collate/collation.h). */
#define OF_BATCH(name)                                                                                                 \
        "is written " name "(alpha=1, num_classes=N), as the last step of a part that names the label, too: "          \
        "\"image, label: ... " name "(num_classes=N)\""

static const struct row ANSWERS[] = {
        { "Compose", "is not needed: write the steps one after the other, with blanks between them" },
        { "ToImage", "is not needed: pictures are decoded already; layout(nchw) puts the channels first" },
        { "ToPILImage", "is not needed: pictures stay arrays; leave it out" },
        { "Lambda", "would be code of yours: do that with the batch, in the trainer" },
        { "MixUp", OF_BATCH("mixup") },
        { "CutMix", OF_BATCH("cutmix") },
        { "LinearTransformation", IN_TRAINER },
};

static const struct row LEFT_OUT[] = {
        { "antialias", "a resize always averages the pixels that it leaves out, as Pillow does" },
        { "inplace", "there is no tensor yet that could be kept" },
        { "value_range", "floats are level / 255" },
};

static const char *torchvision_find(const struct row *rows, size_t n_rows, const char *word, size_t n) {
        for (size_t i = 0; i < n_rows; i++)
                if (typed_is_class(word, n, rows[i].name))
                        return rows[i].text;
        return NULL;
}

const char *torchvision_step(const char *word, size_t n) {
        return torchvision_find(STEP_NAMES, ARRAY_SIZE(STEP_NAMES), word, n);
}

const char *torchvision_steps(const char *word, size_t n) {
        return torchvision_find(STEP_TEXTS, ARRAY_SIZE(STEP_TEXTS), word, n);
}

const char *torchvision_answer(const char *word, size_t n) {
        return torchvision_find(ANSWERS, ARRAY_SIZE(ANSWERS), word, n);
}

const char *torchvision_left_out(const char *word, size_t n) {
        return torchvision_find(LEFT_OUT, ARRAY_SIZE(LEFT_OUT), word, n);
}

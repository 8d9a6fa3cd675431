/* augment/torchvision.h: what is written here for torchvision's classes and their arguments. Private to this floor.
 *
 * Most classes have a step of the same name (typed_is_class()); this is about the others. */
#pragma once

#include <stddef.h>

/* The step that is this class, the same arguments included: "hflip" for RandomHorizontalFlip. NULL: there is none. */
const char *torchvision_step(const char *word, size_t n);

/* The steps that do what this class does, which has no arguments: "to(float32) layout(nchw)" for ToTensor. NULL: there
 * are none. */
const char *torchvision_steps(const char *word, size_t n);

/* What to do instead, as the rest of a sentence that begins with the class's name. NULL: the class is not known. */
const char *torchvision_answer(const char *word, size_t n);

/* Why an argument is not needed, after "leave it out: ". NULL: it is not known. */
const char *torchvision_left_out(const char *word, size_t n);

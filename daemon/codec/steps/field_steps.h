/* codec/steps/field_steps.h: the steps for fields that are not pictures or sounds, and what a part ends with. Each is a kind
 * (proto/text/kinds.h) in the file that reads it. */
#pragma once

#include "proto/text/kinds.h"

#define KIND(name) extern const struct kind field_step_##name;
#include "kinds/field_steps.h"
#undef KIND

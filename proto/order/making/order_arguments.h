/* order/making/order_arguments.h: the values of a step's arguments, from text and to text. Private to the order's text. */
#pragma once

#include "proto/order/making/order_text.h"

/* Reads n characters as the value of an argument; lists are read with dlp_arguments_add(). What it refers to is kept in
 * `text`. -EINVAL with what is allowed. */
int dlp_argument_read(const struct dlp_argument *argument, const char *word, size_t n, struct dlp_order_text *text,
                      struct dlp_value *ret_value, struct why *why);

/* Adds a number, with a name of n_name characters (NULL: without one), to a list that grows. -EINVAL. */
int dlp_argument_add(const struct dlp_argument *argument, const char *name, size_t n_name, const char *word, size_t n,
                     struct dlp_order_text *text, struct dlp_value *value, struct why *why);

/* Writes a value as a text of at most `size` bytes with NUL. Returns its length, as snprintf(). */
size_t dlp_argument_print(const struct dlp_argument *argument, const struct dlp_value *value, char *text, size_t size);

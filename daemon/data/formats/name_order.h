/* data/formats/name_order.h: the order in which Python sorts file names.
 *
 * torchvision lists a folder as Python strings and sorts them, and a Python string is a list of code points. A file
 * name is bytes: Python decodes them as UTF-8, and each byte that is not valid UTF-8 becomes the code point U+DC00 +
 * byte ("surrogateescape"). So names with such bytes, or with characters from U+E000 on, sort differently from their
 * bytes: b"\xff" (U+DCFF) comes before U+E000, whose first byte is 0xee. */
#pragma once

/* Like strcmp(), in Python's order. Different names never compare equal. */
int name_compare(const char *a, const char *b);

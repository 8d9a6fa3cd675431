/* proto/base/symbol.h: how the functions of proto/base are called by the linker.
 *
 * libdlclient.a has one name space with the program that links it, so all that proto leaves in it begins with dlp_. The
 * functions of this folder are called on every page of the daemon and of the library; there their names stay short. */
#pragma once

/* Comes after a declaration and before its attributes. */
#define DLP_SYMBOL(name) __asm__("dlp_" #name)

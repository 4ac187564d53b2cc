// The look of pictures: colours, patterns, themes.

#ifndef PWSP_SVG_STYLE_H
#define PWSP_SVG_STYLE_H

#include "output.h"

enum { PWSP_SVG_KERNELS = 8 };  // colours, with a pattern each

// The element itself, its title, the style sheet, the background, the patterns "k0" to "k7" of kernels
// and "s0" on of stalls, and the begin of a line of text, which the caller ends.
PWSP_INTERNAL void pwsp_svg_begin(pwsp_out *out, const char *title, uint32_t width, uint32_t height,
                                  ptowsp_theme theme);

// The colour of the i-th pattern, modulo their number: "#56b4e9".
PWSP_INTERNAL const char *pwsp_svg_colour(uint32_t i);

// The legend's name for the idle time of a stall.
PWSP_INTERNAL const char *pwsp_svg_stall_name(uint32_t stall);

#endif

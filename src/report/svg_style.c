// The look of pictures: colours, patterns, themes.
//
// Okabe and Ito's colours, which colour-blind readers can distinguish; kernels have patterns as
// well.

#include "svg_style.h"

// -- style ----------------------------------------------------------------------------------------

static const char pwsp_svg_colours[PWSP_SVG_KERNELS][8] = {
    "#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00", "#999999"};

// The pattern of each kernel, over its colour.
static const char pwsp_svg_patterns[PWSP_SVG_KERNELS][48] = {
    "",
    "<path d=\"M-2 2L2-2M0 8L8 0M6 10L10 6\"/>",
    "<path d=\"M4 0V8\"/>",
    "<path d=\"M0 4H8\"/>",
    "<path d=\"M-2 6L2 10M0 0L8 8M6-2L10 2\"/>",
    "<circle cx=\"4\" cy=\"4\" r=\"1.2\"/>",
    "<path d=\"M0 4H8M4 0V8\"/>",
    "<path d=\"M0 0L8 8M0 8L8 0\"/>"};

// By stall: its colour and its name in the legend.
static const char pwsp_svg_stalls[PTOWSP_STALL_COUNT][2][24] = {
    {"#888888", "idle: nothing left"}, {"#e05a6b", "idle: dependency"},
    {"#888888", "idle: lane"},         {"#9575cd", "idle: window"},
    {"#c77d1e", "idle: order"},        {"#2a9d8f", "idle: slot"},
    {"#5f8fd0", "idle: timing"},       {"#858c72", "idle: start"},
    {"#d648c0", "idle: channel"},      {"#7a5c3e", "idle: task ring"},
    {"#4a7c2f", "idle: byte ring"},    {"#b0413e", "idle: dependency ring"},
    {"#2f6f8f", "idle: map ring"},     {"#6b8e23", "idle: depth"},
    {"#c2185b", "waits for a rank"},   {"#8d4b9e", "idle: control"}};

static void pwsp_svg_theme(pwsp_out *out, bool is_dark) {
    pwsp_out_format(out,
                    ".bg{fill:%s}.t{fill:%s}.u{fill:%s}.g{stroke:%s}.row{fill:%s}.c{stroke:%s}",
                    is_dark ? "#0d1117" : "#ffffff", is_dark ? "#e6edf3" : "#1f2328",
                    is_dark ? "#9da7b1" : "#59636e", is_dark ? "#30363d" : "#d8dee4",
                    is_dark ? "#161b22" : "#f6f8fa", is_dark ? "#ffffff" : "#000000");
}

static void pwsp_svg_style(pwsp_out *out, ptowsp_theme theme) {
    pwsp_out_text(out,
                  "<style>text{font-family:-apple-system,'Segoe UI','DejaVu Sans',Arial,"
                  "sans-serif;font-size:11px}.h{font-size:15px;font-weight:600}.b{fill:#10151a;"
                  "font-size:10px}.n{text-anchor:end}.m{text-anchor:middle}.c{fill:none;"
                  "stroke-width:1.6}.g{stroke-width:1}.a{stroke:#c2185b;stroke-width:1.2}"
                  ".b{paint-order:stroke;stroke:#fff;stroke-opacity:.5;stroke-width:2.5px}");
    pwsp_svg_theme(out, theme == PTOWSP_THEME_DARK);
    if (theme == PTOWSP_THEME_AUTO) {
        pwsp_out_text(out, "@media(prefers-color-scheme:dark){");
        pwsp_svg_theme(out, true);
        pwsp_out_text(out, "}");
    }
    pwsp_out_text(out,
                  "</style>\n<defs><marker id=\"a\" viewBox=\"0 0 6 6\" refX=\"6\" refY=\"3\" "
                  "markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L6 3L0 6z\" "
                  "fill=\"#c2185b\"/></marker>");
    for (uint32_t i = 0; i < PWSP_SVG_KERNELS; i++) {
        pwsp_out_format(out,
                        "<pattern id=\"k%u\" width=\"8\" height=\"8\" "
                        "patternUnits=\"userSpaceOnUse\"><rect width=\"8\" height=\"8\" "
                        "fill=\"%s\"/>",
                        i, pwsp_svg_colours[i]);
        pwsp_out_format(out,
                        "<g fill=\"#000\" fill-opacity=\".35\" stroke=\"#000\" "
                        "stroke-opacity=\".22\" stroke-width=\"1.2\">%s</g></pattern>",
                        pwsp_svg_patterns[i]);
    }
    for (uint32_t i = 0; i < PTOWSP_STALL_COUNT; i++) {
        pwsp_out_format(out,
                        "<pattern id=\"s%u\" width=\"6\" height=\"6\" "
                        "patternUnits=\"userSpaceOnUse\"><path d=\"M-1 1L1-1M0 6L6 0M5 7L7 5\" "
                        "stroke=\"%s\" stroke-opacity=\".9\"/></pattern>",
                        i, pwsp_svg_stalls[i][0]);
    }
    pwsp_out_text(out, "</defs>\n<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n");
}

PWSP_INTERNAL void pwsp_svg_begin(pwsp_out *out, const char *title, uint32_t width, uint32_t height,
                                  ptowsp_theme theme) {
    pwsp_xml_print(out,
                   "<svg xmlns='http://www.w3.org/2000/svg' width='%u' height='%u' viewBox='0 0 %u "
                   "%u' role='img'>\n<title>%s</title>\n",
                   width, height, width, height, title);
    pwsp_svg_style(out, theme);
    pwsp_xml_print(out, "<text class='t h' x='12' y='24'>%s</text>\n<text class='u' x='12' y='42'>",
                   title);
}

PWSP_INTERNAL const char *pwsp_svg_stall_name(uint32_t stall) {
    PTOWSP_ASSERT(stall < PTOWSP_STALL_COUNT);
    return pwsp_svg_stalls[stall][1];
}

PWSP_INTERNAL const char *pwsp_svg_colour(uint32_t i) {
    return pwsp_svg_colours[i % PWSP_SVG_KERNELS];
}

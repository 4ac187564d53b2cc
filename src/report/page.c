// A report as a page that needs no other file: the verdict, the timeline, tables.
//
// The timeline zooms with the wheel, moves by dragging and is whole again after a double click. A task
// that is clicked tells its chain of waits, back to the start: titles of bars have the cause of each
// task (svg.c), so the script needs no data of its own. Without scripts all is there but that.

#include "facts.h"
#include "report.h"

// clang-format off
static const char pwsp_page_script[] =
    "<script>//<![CDATA[\n(function(){\n"
    "var svg=document.querySelector('svg'),find=document.getElementById('find'),\n"
    "why=document.getElementById('why'),box=svg.viewBox.baseVal,W=box.width,H=box.height,\n"
    "bars=[],tasks={},drag=null,moved=false;\n"
    "function clamp(x,low,high){return Math.min(high,Math.max(low,x))}\n"
    "function look(x,y,w){box.width=w;box.height=H*w/W;box.x=clamp(x,0,W-w);box.y=clamp(y,0,H-box.height)}\n"
    "svg.querySelectorAll('rect>title').forEach(function(t){\n"
    "var m=/task (\\d+): (\\d+) to (\\d+)(?:, after ([^(]*\\w))?(?: \\(task (\\d+)\\))?$/.exec(t.textContent);\n"
    "if(m){var b={rect:t.parentNode,text:t.textContent,name:t.textContent.split('\\n')[0],id:m[1],\n"
    "from:m[2],to:m[3],reason:m[4],cause:m[5]};bars.push(b);tasks[b.id]=b;b.rect.style.cursor='pointer';\n"
    "b.rect.onclick=function(){if(!moved)explain(b)}}});\n"
    "svg.addEventListener('wheel',function(e){e.preventDefault();var r=svg.getBoundingClientRect(),\n"
    "px=(e.clientX-r.left)/r.width,py=(e.clientY-r.top)/r.height,w=clamp(box.width*(e.deltaY<0?.8:1.25),W/1000,W);\n"
    "look(box.x+px*(box.width-w),box.y+py*(box.height-H*w/W),w)},{passive:false});\n"
    "svg.onpointerdown=function(e){drag={x:e.clientX,y:e.clientY,bx:box.x,by:box.y};moved=false};\n"
    "window.addEventListener('pointermove',function(e){if(!drag)return;var k=box.width/svg.getBoundingClientRect().width,\n"
    "dx=e.clientX-drag.x,dy=e.clientY-drag.y;moved=moved||Math.abs(dx)+Math.abs(dy)>4;\n"
    "if(moved)look(drag.bx-dx*k,drag.by-dy*k,box.width)});\n"
    "window.addEventListener('pointerup',function(){drag=null});\n"
    "svg.ondblclick=function(){look(0,0,W);mark([]);why.textContent=''};\n"
    "function mark(list){bars.forEach(function(b){b.rect.style.opacity=!list.length||list.indexOf(b)>=0?1:.2})}\n"
    "function explain(b){var list=[],text='';\n"
    "for(var at=b;at&&list.indexOf(at)<0;at=at.cause?tasks[at.cause]:null){list.push(at);\n"
    "if(list.length<=40)text+='task '+at.id+'  '+at.name+'  '+at.from+' to '+at.to+\n"
    "(at.reason?', after '+at.reason+(at.cause?' of task '+at.cause:''):'')+'\\n';\n"
    "else if(list.length==41)text+='...\\n'}\n"
    "mark(list);why.textContent=text}\n"
    "find.oninput=function(){var q=find.value.toLowerCase(),list=q?bars.filter(function(b){\n"
    "return b.text.toLowerCase().indexOf(q)>=0}):[];mark(list);\n"
    "why.textContent=q?list.length+' of '+bars.length+' tasks that are drawn':''};\n"
    "})()\n//]]></script>\n";
// clang-format on

static void pwsp_html_row(pwsp_facts *facts, const char *name, uint64_t value, uint64_t whole) {
    double percent = pwsp_report_percent(value, whole);
    pwsp_number_text width = pwsp_fixed(percent > 100.0 ? 100.0 : percent, 1);
    pwsp_xml_print(facts->out,
                   "<tr><th>%s</th><td>%s</td><td>%s %%</td><td><div style='width:%s%%'>"
                   "</div></td></tr>\n",
                   name, pwsp_grouped(value).text, pwsp_fixed(percent, 1).text, width.text);
}

static void pwsp_html_begin(pwsp_facts *facts) {
    pwsp_out *out = facts->out;
    const char *title = pwsp_picture_title(facts->picture);
    pwsp_xml_print(out, "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'/><title>%s",
                   title);
    pwsp_out_text(out,
                  "</title><style>body{font:14px/1.5 -apple-system,'Segoe UI','DejaVu "
                  "Sans',Arial,sans-serif;"
                  "margin:24px auto;max-width:1000px;padding:0 16px;color:#1f2328;background:#fff}"
                  "h1{font-size:22px}h2{font-size:16px;margin-top:28px}table{border-collapse:"
                  "collapse}");
    pwsp_out_text(
        out,
        "th{text-align:left;font-weight:400}th,td{padding:3px 14px 3px 0;border-bottom:"
        "1px solid "
        "#d8dee4}td{text-align:right}table{width:600px}th{width:240px}td:last-child{width:180px}"
        "div{height:10px;background:#0072b2}svg{max-width:100%;height:auto;touch-action:none}"
        "svg .h{display:none}"  // the page has the title
        "@media print{input,small{display:none}body{max-width:none;margin:0}}");
    pwsp_out_text(out,
                  "@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}"
                  "th,td{border-color:#30363d}div{background:#56b4e9}}</style></head><body>\n");
    pwsp_xml_print(out, "<h1>%s</h1>\n<p>", title);
    pwsp_report_headline(facts);
    pwsp_out_text(out, "</p>\n");
    for (uint32_t i = 0; i < facts->verdict.count; i++) {
        pwsp_xml_print(out, i ? "<p>%s</p>\n" : "<p><b>%s</b></p>\n", facts->verdict.lines[i]);
    }
    pwsp_report_conflicts(facts, PTOWSP_REPORT_HTML);
}

static void pwsp_html_tables(pwsp_facts *facts) {
    pwsp_out *out = facts->out;
    const pwsp_picture *picture = facts->picture;
    uint64_t makespan = facts->bounds.makespan_cycles;
    pwsp_out_text(out, "<h2>Makespan and its lower bounds, in cycles</h2>\n<table>\n");
    pwsp_html_row(facts, "makespan", makespan, makespan);
    for (uint32_t i = 0; i < facts->row_count; i++) {
        pwsp_html_row(facts, facts->rows[i].name, facts->rows[i].cycles, makespan);
    }
    pwsp_out_text(out, "</table>\n<h2>Idle time of lanes, in cycles</h2>\n<table>\n");
    for (uint32_t i = 0; i < PTOWSP_STALL_COUNT; i++) {
        if (picture->result->recorder.idle[i]) {
            pwsp_html_row(facts, i ? ptowsp_stall_name((ptowsp_stall)i) : "nothing left",
                          picture->result->recorder.idle[i], facts->lane_time);
        }
    }
    pwsp_out_text(
        out,
        "</table>\n<h2>Kernels, in cycles and as a share of the time of lanes</h2>\n<table>\n");
    for (uint32_t k = 1; k < picture->program->kernels.count; k++) {
        pwsp_html_row(facts, pwsp_picture_kernel(picture, k),
                      picture->result->recorder.kernels[k].busy_cycles, facts->lane_time);
    }
    pwsp_out_text(out, "</table>\n<h2>Kernels on the critical path, in cycles</h2>\n<table>\n");
    for (uint32_t k = 1; k < picture->program->kernels.count; k++) {
        pwsp_html_row(facts, pwsp_picture_kernel(picture, k), facts->critical[k].busy_cycles,
                      makespan);
    }
    pwsp_out_text(out, "</table>\n<h2>Resources</h2>\n<pre>");
    pwsp_report_held(facts);
    if (picture->result->has_rings) {
        pwsp_report_rings(picture->result, pwsp_out_sink(out));
    }
    pwsp_out_text(out, "</pre>\n");
}

PWSP_INTERNAL bool pwsp_report_page(pwsp_facts *facts) {
    pwsp_picture *picture = facts->picture;
    pwsp_out *out = facts->out;
    bool is_good = true;
    pwsp_html_begin(facts);
    if (picture->result->has_records && picture->row_count <= picture->options->lane_max) {
        pwsp_out_text(out, "<p><input id=\"find\" type=\"search\" placeholder=\"find tasks\"/> "
                           "<small>wheel: zoom, drag: move, double click: all, click a task: why "
                           "it waited</small></p>\n");
        is_good = pwsp_export_svg(picture);
        pwsp_out_text(out, "<pre id=\"why\"></pre>\n");
        pwsp_out_text(out, pwsp_page_script);
    }
    pwsp_html_tables(facts);
    if (facts->what_if_count) {
        pwsp_out_text(out, "<h2>What if: makespan in cycles</h2>\n<table>\n");
    }
    for (uint32_t i = 0; i < facts->what_if_count; i++) {
        const ptowsp_what_if *what = &facts->what_ifs[i];
        char name[PWSP_WHAT_IF_TEXT_MAX];
        pwsp_what_if_name(picture, what, name);
        pwsp_html_row(facts, name, what->makespan_cycles, facts->bounds.makespan_cycles);
    }
    pwsp_out_text(out, facts->what_if_count ? "</table>\n</body></html>\n" : "</body></html>\n");
    return is_good;
}

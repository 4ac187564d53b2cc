# Reads an export back with the modules of Python, and compares it with what export_test.c expects.
import sys, json, csv, xml.dom.minidom as dom
expected = [l.rstrip('\n').split('|') for l in open('build/export_expected.txt')]
kind, path = sys.argv[1], 'build/export_test.out'
if kind == 'json':
    d = json.load(open(path, encoding='utf-8'))
    names = {(e['pid'], e['tid']): e['args']['name'] for e in d['traceEvents']
             if e['name'] == 'thread_name'}
    got = [[str(e['args']['task']), e['name'], names[e['pid'], e['tid']],
            str(round(e['ts'] * 1000)), str(round((e['ts'] + e['dur']) * 1000)),
            e['args']['stall'], str(e['args']['bytes_written'])]
           for e in d['traceEvents'] if e['ph'] == 'X' and str(e['pid']) in (sys.argv + ['1', '2'])[2:4]]
    starts = {e['id']: e['ts'] for e in d['traceEvents'] if e['ph'] == 's'}
    ends = {e['id']: e['ts'] for e in d['traceEvents'] if e['ph'] == 'f'}
    assert starts.keys() == ends.keys() and all(starts[i] <= ends[i] for i in starts)
    # What speedscope's importer asks of a thread: complete events with names and numbers that nest.
    threads = {}
    for e in d['traceEvents']:
        assert isinstance(e['name'], str) and isinstance(e['pid'], int), e
        if e['ph'] == 'X':
            begin, end = round(e['ts'] * 1000), round((e['ts'] + e['dur']) * 1000)
            assert begin <= end and isinstance(e['tid'], int), e
            threads.setdefault((e['pid'], e['tid']), []).append((begin, -end))
    for thread, slices in threads.items():
        assert thread in names, thread
        open_ends = []
        for begin, end in sorted(slices):
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or -end <= open_ends[-1], (thread, begin, -end)
            open_ends.append(-end)
    got.sort(key=lambda r: int(r[0]))
elif kind == 'csv':
    rows = list(csv.DictReader(open(path, newline='', encoding='utf-8')))
    got = [[r['index'], (r['kernel'] + ' ' + r['values']).strip(), r['track'], r['start'],
            r['end'], r['stall'], r['bytes_written']] for r in rows]
    got.sort(key=lambda r: int(r[0]))
elif kind == 'table':
    lines = open(path, encoding='utf-8').read().splitlines()[1:]
    got = sorted([[l[:10].strip(), l[75:].strip(), l[38:50].strip(), l[11:23].strip(),
            l[24:36].strip(), l[51:62].strip()] for l in lines], key=lambda r: int(r[0]))
    expected = [e[:6] for e in expected]
elif kind == 'svg':
    d = dom.parse(path)
    def text(e): return ''.join(c.data for c in e.childNodes if c.nodeType == c.TEXT_NODE)
    got = []
    for e in d.getElementsByTagName('title')[1:]:
        label, rest = text(e).split('\n')
        rest = rest.split()
        got.append([rest[1].rstrip(':'), label, rest[2], rest[4].rstrip(',')])
    got.sort(key=lambda r: int(r[0]))
    expected = [[e[0], e[1], e[3], e[4]] for e in expected]
    texts = [text(e) for e in d.getElementsByTagName('text')]
    assert all(k in ' '.join(texts) for k in sys.argv[2:]), texts
    left = [r for r in d.getElementsByTagName('rect') if r.getAttribute('fill')[:6] == 'url(#k'
            and r.getElementsByTagName('title')]
    assert len(left) == len(expected)
assert got == expected, [(g, e) for g, e in zip(got, expected) if g != e][:3] or len(got)

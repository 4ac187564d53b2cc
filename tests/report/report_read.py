# Reads the reports of report_test.c back.
import json, xml.dom.minidom as dom
d = json.load(open('build/report.json', encoding='utf-8'))
assert d['title'] == 'a "<&>\\' and d['makespan'] == 20 and d['tasks'] == 20
assert d['bounds'] == {'path': 20,
    'work': [{'pool': '', 'lanes': 40, 'cycles': 6}]}, d['bounds']
assert sum(d['idle'].values()) == 40 * 20 - 215
assert [(k['name'], k['tasks'], k['busy'], k['critical']) for k in d['kernels']] == \
    [('attend', 15, 195, 16), ('merge', 5, 20, 4)]
assert d['what_if'] == [{'kernel': 'attend', 'percent': 50, 'makespan': 14}]
p = dom.parse('build/report.html')
rows = [[''.join(t.data for t in c.childNodes if c.nodeType == 1 and t.nodeType == 3)
    for c in r.childNodes if c.nodeType == 1] for r in p.getElementsByTagName('tr')]
assert ['longest chain of dependencies', '20', '100.0 %', ''] in rows, rows
assert len(p.getElementsByTagName('svg')) == 1

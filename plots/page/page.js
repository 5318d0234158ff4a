/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The page around the figures. */
/* ---- the page -------------------------------------------------------------- */

function eventWords(step) {
    const words = [];
    if (step.tensors === null)
        words.push('A saved result has no tensors: only categories are told.');
    else if (step.tensors.hidden > 0)
        words.push(`The ${step.tensors.rows.length} largest tensors have ` +
            `names; ${step.tensors.hidden.toLocaleString('en')} smaller ones ` +
            `(at most ${size(step.tensors.hidden_bytes)} each) are drawn ` +
            `without.`);
    if (step.shown < step.events)
        words.push(`Of ${step.events.toLocaleString('en')} events ` +
            `${step.shown.toLocaleString('en')} are drawn: the lowest, the ` +
            `highest and the last of each part of the step, so every peak is ` +
            `exact.`);
    const turns = step.stages.reduce((n, stage) => n + stage.hidden, 0);
    if (turns > 0)
        words.push(`The ${turns.toLocaleString('en')} turns of the stages are ` +
            `too many to tell one by one: a stage's row shows what its stream ` +
            `does in each part of the step.`);
    return words.length > 0
        ? el('p', {className: 'faint', textContent: words.join(' ')}) : null;
}

function timeline(variant, charts) {
    if (!variant.step)
        return null;
    const chart = new Chart(variant);
    charts.push(chart);
    return section(variant.fits === null ? 'Memory over the events'
            : 'Memory over time, of rank ' + variant.step.rank,
        chart.tools(), el('div', {}, chart.canvas), chart.at,
        el('p', {className: 'keys', textContent: 'Drag to zoom, double-click ' +
            'for the whole step, Ctrl or Shift and the wheel. Keys: left and ' +
            'right move, up and down go through the tensors, + and - zoom, 0 ' +
            'whole step, p peak.'}),
        chart.works(), chart.legend(), eventWords(variant.step));
}

function numbers(variant) {
    return el('dl', {className: 'numbers'}, ...variant.numbers.map(
        ([name, value]) => el('div', {}, el('dt', {textContent: name}),
                              el('dd', {textContent: value}))));
}

function alive(variant) {
    return section('Alive at the peak', table([
        ['Bytes', 'number', g => size(g.bytes)],
        ['Tensors', 'name', g => g.name],
        ['Category', '', g => plain(g.category)],
        ['Why', 'words', g => g.why],
        ['Less with', 'words', g => g.less.join(', ')]
    ], variant.alive.slice(0, variant.most_alive)),
    variant.groups <= variant.most_alive ? null
        : el('p', {className: 'faint', textContent: 'Smaller ones that are ' +
            `not in the table: ${variant.groups - variant.most_alive}.`}));
}

function whatif(variant) {
    return section('What if', table([
        ['Change', 'name', row => row.change],
        ['Costs', '', row => row.costs],
        ['Reserved', 'number', row => size(row.reserved_bytes)],
        ['Step', 'number', row => time(row.step_ns)],
        ['Fits', '', row => row.fits ? 'yes' : 'no'],
        ['Command', 'words', row => el('code', {textContent: row.command})]
    ], variant.whatif), variant.search === null ? null
        : el('p', {}, (variant.fits === null ? 'Another allocator is tried by '
            : 'All of these together are searched by '),
             el('code', {textContent: variant.search})));
}

function facts(variant) {
    return section('What was assumed', table([
        ['', 'faint', row => row[0]], ['', '', row => row[1]]
    ], variant.facts));
}

/* A recording neither fits nor does not. */
function verdict(variant) {
    const [look, mark] = variant.fits === null ? ['', '']
        : variant.fits ? ['good', '✓ '] : ['bad', '✗ '];
    return el('p', {className: `verdict ${look}`,
                    textContent: mark + variant.verdict});
}

function body(variant, charts) {
    if (variant.refused !== null)
        return [el('p', {className: 'verdict bad',
                         textContent: `✗ refused: ${variant.refused}`})];
    return [
        el('p', {className: 'faint', textContent: variant.subtitle}),
        verdict(variant),
        numbers(variant),
        sideBySide(),
        timeline(variant, charts),
        alive(variant),
        whatif(variant),
        section('How accurate such runs are', table([
            ['', 'faint', row => row[0]], ['', '', row => row[1]]
        ], variant.accuracy)),
        facts(variant),
        section('The command', variant.command === null ? null
            : el('p', {}, el('code', {textContent: variant.command})))
    ];
}

function choices(select) {
    if (data.variants.length < 2)
        return null;
    return el('fieldset', {},
        el('legend', {textContent: 'Variant'}),
        ...data.variants.map((variant, i) => el('label', {},
            el('input', {type: 'radio', name: 'variant', checked: i === 0,
                         onchange: () => select(i)}),
            ' ' + variant.name)));
}

function sideBySide() {
    if (data.variants.length < 2)
        return null;
    const cell = (variant, name) =>
        (variant.numbers || []).find(row => row[0] === name)?.[1] ?? '-';
    const names = ['Peak reserved', 'Peak allocated', 'Step', 'Throughput'];
    return section('Side by side', table([
        ['Variant', 'name', variant => variant.name],
        ...names.map(name => [name, 'number', variant => cell(variant, name)]),
        ['Fits', '', variant => variant.refused !== null ? 'refused'
            : variant.fits === null ? 'recorded' : variant.fits ? 'yes' : 'no']
    ], data.variants));
}

const charts = [], title = el('h1'), shown = el('div');
function select(i) {
    const variant = data.variants[i];
    charts.length = 0;
    title.textContent = variant.title;
    shown.replaceChildren(...body(variant, charts).filter(it => it != null));
    charts.forEach(chart => chart.draw());
}
const redraw = () => charts.forEach(chart => chart.draw());
document.getElementById('page').replaceChildren(
    title, ...[choices(select)].filter(it => it != null), shown,
    el('p', {className: 'faint', textContent: data.made}));
select(0);
window.addEventListener('resize', redraw);
for (const query of ['print', '(prefers-color-scheme: dark)'])
    window.matchMedia(query).addEventListener('change', redraw);

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The page around the figures. */
/* ---- the page -------------------------------------------------------------- */

/* What is told together. */
function hiddenWords(step) {
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
    return words;
}

function eventWords(step) {
    const words = hiddenWords(step);
    const turns = step.stages.reduce((n, stage) => n + stage.hidden, 0);
    if (turns > 0)
        words.push(`The ${turns.toLocaleString('en')} turns of the stages are ` +
            `too many to tell one by one: a stage's row shows what its stream ` +
            `does in each part of the step.`);
    return words.length > 0
        ? el('p', {className: 'faint', textContent: words.join(' ')}) : null;
}

const keyWords = (what, jumps) => el('p', {className: 'keys', textContent:
    'Drag to zoom, double-click for the whole step, Ctrl or Shift and the ' +
    'wheel. Keys: left and right move, up and down go through the ' +
    `${what}, + and - zoom, 0 whole step, ${jumps}.`});

function timeline(variant, charts) {
    if (!variant.step)
        return null;
    const chart = new Chart(variant);
    charts.push(chart);
    return section(variant.fits === null ? 'Memory over the events'
            : 'Memory over time, of rank ' + variant.step.rank,
        chart.tools(), el('div', {}, chart.canvas), chart.at,
        keyWords('tensors', 'p peak'),
        chart.works(), chart.legend(), eventWords(variant.step));
}

function numbers(pairs) {
    return el('dl', {className: 'numbers'}, ...pairs.map(
        ([name, value]) => el('div', {}, el('dt', {textContent: name}),
                              el('dd', {textContent: value}))));
}

function alive(variant) {
    return section('Alive at the peak', table([
        ['Bytes', 'number', g => size(g.bytes)],
        ['Tensors', 'name', g => g.name],
        ['Category', 'short', g => plain(g.category)],
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

/* Of what memsim fit searched: nothing that fits is both smaller and faster
 * than a row. */
function front(variant) {
    const found = variant.front;
    if (!found)
        return null;
    return section('What a search finds', found.rows.length === 0
        ? el('p', {textContent: 'Nothing that was searched fits.'}) : table([
            ['', 'short', row => row.best ? '★ best' : ''],
            ['Set-up', 'name', row => row.setup],
            ['Reserved', 'number', row => size(row.reserved_bytes)],
            ['To spare', 'number', row => size(row.headroom_bytes)],
            ['Step', 'number', row => time(row.step_ns)],
            ['Tokens/s', 'number', row => row.tokens_per_second > 0
                ? row.tokens_per_second.toLocaleString('en') : '-'],
            ['Command', 'words',
             row => el('code', {textContent: row.command})]
        ], found.rows), el('p', {className: 'faint', textContent: 'Of ' +
            `${found.searched.toLocaleString('en')} set-ups these fit, and ` +
            'none of the others is both smaller and faster than a row.'}));
}

/* Pairs of words. */
const facts = (title, pairs) => section(title, table([
    ['', 'faint', row => row[0]], ['', '', row => row[1]]], pairs));

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
        numbers(variant.numbers),
        sideBySide(),
        timeline(variant, charts),
        alive(variant),
        whatif(variant),
        front(variant),
        facts('How accurate such runs are', variant.accuracy),
        facts('What was assumed', variant.facts),
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

/* ---- two steps on one axis ------------------------------------------------- */

function overlaid(overlay, charts) {
    const chart = new Overlay(overlay), words = overlay.sides.flatMap(
        (side, s) => hiddenWords(side.step).map(
            said => `Of ${s === 0 ? 'A' : 'B'}: ${said}`));
    charts.push(chart);
    return section('Both on one axis', chart.tools(),
        el('div', {}, chart.canvas), chart.at,
        keyWords('differences', 'a and b the peaks, d the widest gap'),
        chart.legend(),
        el('p', {className: 'faint', textContent: (overlay.phases.length > 0
            ? 'Each phase is as long as the mean of its shares of the two ' +
              'steps. ' : '') + 'At the cursor: what one holds there and the ' +
            'other lacks at the same place. ' + words.join(' ')}));
}

function differences(overlay) {
    const rest = overlay.differences - overlay.groups.length;
    return section('What one holds at its peak and the other lacks', table([
        ['B less A', 'number', row => gapWords(row.gap)],
        ['A holds', 'number', row => row.sides[0]],
        ['B holds', 'number', row => row.sides[1]],
        ['Category', 'short', row => plain(row.category)],
        ['Made in', 'short', row => row.phase],
        ['Tensor and op', 'name', row => row.name],
        ['At the other', 'words', row => row.made]
    ], overlay.groups), rest === 0 ? null : el('p', {className: 'faint',
        textContent: `Smaller ones that are not in the table: ${rest} (with ` +
            '--top 0 they are).'}));
}

function against(overlay, charts) {
    const [peak] = overlay.rows;
    return [
        el('p', {className: 'verdict', textContent: overlay.cause}),
        numbers([['Peak of A', peak[1]], ['Peak of B', peak[2]],
                 ['B less A', peak[3]]]),
        overlaid(overlay, charts),
        differences(overlay),
        section('Peaks', table([
            ['', 'faint', row => row[0].trim()],
            ...['A', 'B', 'B less A'].map(
                (name, i) => [name, 'number', row => row[i + 1]])
        ], overlay.rows)),
        facts('What was compared', overlay.facts)
    ];
}

/* ---- all ------------------------------------------------------------------- */

const charts = [], title = el('h1'), shown = el('div');
function fill(words, body) {
    charts.length = 0;
    title.textContent = words;
    shown.replaceChildren(...body(charts).filter(it => it != null));
    charts.forEach(chart => chart.draw());
}
const select = i => fill(data.variants[i].title,
                         charts => body(data.variants[i], charts));
const redraw = () => charts.forEach(chart => chart.draw());
document.getElementById('page').replaceChildren(
    title, ...[choices(select)].filter(it => it != null), shown,
    el('p', {className: 'faint', textContent: data.made}));
if (data.overlay)
    fill(data.overlay.title, charts => against(data.overlay, charts));
else
    select(0);
window.addEventListener('resize', redraw);
for (const query of ['print', '(prefers-color-scheme: dark)'])
    window.matchMedia(query).addEventListener('change', redraw);

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Draws the page from the data that stands beside it (plots/page/htmlpage.h says
 * what each key is).  What names say is only ever set as text. */
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const NONE = -1;

/* ---- words ---------------------------------------------------------------- */

const GIB = 1024 ** 3, MIB = 1024 ** 2;
const UNITS = [['TiB', 1024 * GIB, 10 * 1024 * GIB], ['GiB', GIB, GIB],
               ['MiB', MIB, MIB], ['KiB', 1024, 1024]];

/* As the text of memsim says it. */
function size(bytes) {
    const unit = UNITS.find(([, , from]) => bytes >= from);
    return unit === undefined ? `${bytes} bytes`
                              : `${(bytes / unit[1]).toFixed(2)} ${unit[0]}`;
}

function time(ns, like = ns) {
    const [unit, by] = like < 1e6 ? ['µs', 1e3] : like < 1e9 ? ['ms', 1e6]
                                                             : ['s', 1e9];
    const value = ns / by;
    return value.toFixed(value < 10 ? 2 : value < 1000 ? 1 : 0) + ' ' + unit;
}

const moment = (step, t) =>
    step.timed ? time(t, Math.max(t, step.end / 1000)) : 'event ' + t;
const plain = word => word.replaceAll('_', ' ');

/* ---- elements -------------------------------------------------------------- */

function el(tag, of = {}, ...children) {
    const node = Object.assign(document.createElement(tag), of);
    node.append(...children.filter(child => child != null));
    return node;
}

function swatch(color) {
    const box = el('span', {className: 'swatch'});
    box.style.background = color;
    return box;
}

/* columns: [heading, class, row => text or element]; nothing without rows. */
function table(columns, rows) {
    if (rows.length === 0)
        return null;
    const cell = (tag, column, content) =>
        el(tag, {className: column[1]}, content ?? '');
    return el('div', {className: 'wide'}, el('table', {},
        el('thead', {}, el('tr', {}, ...columns.map(column => {
            const head = cell('th', column, column[0]);
            head.scope = 'col';
            return head;
        }))),
        el('tbody', {}, ...rows.map(row => el('tr', {}, ...columns.map(
            column => cell('td', column, column[2](row))))))));
}

const section = (title, ...children) =>
    children.some(child => child != null)
        ? el('section', {}, el('h2', {textContent: title}), ...children) : null;

/* ---- a step ---------------------------------------------------------------- */

/* Points to columns: state, t and the levels of each category and in all. */
function decode(step) {
    const flat = step.points, n = step.shown, categories = data.categories;
    const levels = categories.map(() => new Float64Array(n));
    const points = {n, state: new Float64Array(n), t: new Float64Array(n),
                    total: new Float64Array(n), levels};
    const now = new Float64Array(categories.length);
    let at = 0, state = 0, t = 0, total = 0;
    for (let i = 0; i < n; i++) {
        state += flat[at++];
        t += flat[at++];
        for (let k = flat[at++]; k > 0; k--) {
            const category = flat[at++], change = flat[at++];
            now[category] += change;
            total += change;
        }
        points.state[i] = state;
        points.t[i] = t;
        points.total[i] = total;
        levels.forEach((level, c) => { level[i] = now[c]; });
    }
    return points;
}

/* The last point at or before t. */
function pointAt(points, t) {
    let low = 0, high = points.n;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (points.t[middle] <= t)
            low = middle + 1;
        else
            high = middle;
    }
    return Math.max(0, low - 1);
}

const NAME = 0, BYTES = 1, CATEGORY = 2, FROM = 3, TO = 4, MADE = 5, READ = 6,
      FREED = 7, GROUP = 8; /* of a row of tensors */

const isAlive = (row, state) =>
    row[FROM] !== NONE && row[FROM] <= state &&
    (row[TO] === NONE || state < row[TO]);

/* What lies over each other at a point, from below: tensors, then what of a
 * category is too small to have a name. */
function pile(step, points, i) {
    const parts = [];
    let base = 0;
    for (const category of data.order) {
        const top = base + points.levels[category][i];
        let from = base;
        for (const row of step.tensors ? step.tensors.rows : []) {
            if (row[CATEGORY] !== category || !isAlive(row, points.state[i]))
                continue;
            parts.push({category, row, from, to: from + row[BYTES]});
            from += row[BYTES];
        }
        if (top > from)
            parts.push({category, row: null, from, to: top});
        base = top;
    }
    return parts;
}

/* ---- what is said at the cursor -------------------------------------------- */

function tensorWords(variant, part) {
    const step = variant.step, row = part.row;
    const category = plain(data.categories[part.category][0]);
    if (row === null)
        return step.tensors === null
            ? `${category}: ${size(part.to - part.from)}`
            : `${size(part.to - part.from)} in smaller tensors, ${category} ` +
              `(none above ${size(step.tensors.hidden_bytes)})`;
    const word = index => step.tensors.words[index];
    const lines = [`${word(row[NAME])}: ${size(row[BYTES])}, ${category}`];
    if (row[MADE] !== row[NAME])
        lines.push(row[MADE] === NONE ? 'there at the start'
                                      : `made by ${word(row[MADE])}`);
    if (row[READ] !== NONE)
        lines.push(`last read by ${word(row[READ])}`);
    lines.push(row[FREED] !== NONE ? `freed after ${word(row[FREED])}`
        : row[TO] !== NONE ? `freed by event ${row[TO]}`
        : 'there to the end');
    const group = row[GROUP] !== NONE ? variant.alive[row[GROUP]] : null;
    if (group)
        lines.push(`at the peak: ${group.why}` + (group.less.length > 0
            ? `; less with ${group.less.join(', ')}` : ''));
    return lines.join('\n');
}

function cursorWords(variant, points, cursor) {
    if (points.n === 0)
        return '';
    const i = cursor.point;
    const words = `${size(points.total[i])} at ` +
                  moment(variant.step, points.t[i]);
    return cursor.part ? `${words}\n${tensorWords(variant, cursor.part)}`
                       : words;
}

function sliceWords(step, lane, slice) {
    const works = [];
    for (let k = 2; k < slice.length; k += 2)
        works.push(`${data.works[slice[k]][0]} ` +
                   time(slice[k + 1], slice[1] - slice[0]));
    return `${lane.name ?? 'rank ' + lane.rank}, ${moment(step, slice[0])} to ` +
           `${moment(step, slice[1])}\n${works.join(', ')}`;
}

function turnWords(step, stage, turn) {
    const [from, to, kind, micro, of, again] = turn;
    return `rank ${stage.rank}: ${plain(kind)}` + (kind === 'optimizer' ? '' :
        ` of micro-batch ${micro}, stage ${of}`) +
        `\n${moment(step, from)} to ${moment(step, to)}` +
        (again > 0 ? `, of it ${time(again)} run again` : '');
}

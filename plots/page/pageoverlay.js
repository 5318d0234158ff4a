/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two steps on one axis, and what differs between them at the cursor. */
/* ---- a side ---------------------------------------------------------------- */

const ROUND = 512; /* bytes: PyTorch's allocator rounds to these */

/* Where on the axis of both an instant of a side lies. */
function placeOf(knots, t) {
    let k = 0;
    while (k + 1 < knots.length && knots[k + 1][0] <= t)
        k++;
    if (k + 1 === knots.length || t < knots[k][0])
        return knots[k][1];
    const [[t0, at0], [t1, at1]] = [knots[k], knots[k + 1]];
    return at0 + (at1 - at0) * (t - t0) / (t1 - t0);
}

/* The keys by which pairs are made, in their order (tools/differences): of
 * sides that speak alike the first alone, else the other two. */
function keysOf(row, name, byName) {
    const units = Math.ceil(row[BYTES] / ROUND);
    return byName ? [`${row[CATEGORY]} ${row[BYTES]} ${name}`]
                  : [`${row[GROUP]} ${units}`, `${units}`];
}

function readSide(side, byName) {
    const points = decode(side.step), {tensors} = side.step;
    points.t = points.t.map(t => placeOf(side.knots, t));
    const rows = tensors === null ? null : tensors.rows.map(row => {
        const name = tensors.words[row[NAME]];
        return {row, name, keys: keysOf(row, name, byName)};
    });
    return {name: side.name, points, rows};
}

/* Each place at which one of the two changes, and of both the point that is
 * theirs there. */
function merge(sides) {
    const [a, b] = sides.map(side => side.points), n = a.n + b.n;
    const t = new Float64Array(n), total = new Float64Array(n);
    const of = [new Int32Array(n), new Int32Array(n)], gap = total.slice();
    let i = 0, j = 0;
    for (let k = 0; k < n; k++) {
        const first = j >= b.n || (i < a.n && a.t[i] <= b.t[j]);
        t[k] = first ? a.t[i++] : b.t[j++];
        of[0][k] = Math.max(0, i - 1);
        of[1][k] = Math.max(0, j - 1);
        const levels = [a.total[of[0][k]] || 0, b.total[of[1][k]] || 0];
        total[k] = Math.max(...levels);
        gap[k] = Math.abs(levels[1] - levels[0]);
    }
    return {n, t, total, of, gap};
}

/* ---- what differs ---------------------------------------------------------- */

/* Of each side those without a partner of equal key on the other, the first of
 * one with the first of the other. */
function unpaired([a, b], key) {
    const waiting = new Map(), left = [];
    for (const it of b) {
        const list = waiting.get(it.keys[key]);
        if (list)
            list.push(it);
        else
            waiting.set(it.keys[key], [it]);
    }
    for (const list of waiting.values())
        list.reverse();
    for (const it of a)
        if (!waiting.get(it.keys[key])?.pop())
            left.push(it);
    return [left, [...waiting.values()].flat()];
}

/* Those left over by category and name, the largest difference first. */
function groupsOf(left) {
    const groups = new Map();
    left.forEach((all, s) => all.forEach(({row, name}) => {
        const key = `${row[CATEGORY]} ${name}`, bytes = row[BYTES];
        if (!groups.has(key))
            groups.set(key, {category: row[CATEGORY], name, gap: 0,
                             count: [0, 0], bytes: [0, 0], each: [0, 0]});
        const group = groups.get(key);
        group.each[s] = group.count[s] === 0 || group.each[s] === bytes ? bytes
                                                                        : 0;
        group.count[s]++;
        group.bytes[s] += bytes;
        group.gap += s === 0 ? -bytes : bytes;
    }));
    return [...groups.values()];
}

const largestFirst = groups => groups.filter(group => group.gap !== 0).sort(
    (x, y) => Math.abs(y.gap) - Math.abs(x.gap) ||
        (x.name < y.name ? -1 : x.name > y.name ? 1 : 0));

/* Of sides of which one is known by its levels alone. */
function categoriesOf(sides, at) {
    return data.categories.map(([name], category) => {
        const bytes = sides.map(
            ({points}, s) => points.levels[category][at[s]] || 0);
        return {category, name: null, gap: bytes[1] - bytes[0], bytes,
                count: bytes.map(b => b > 0 ? 1 : 0), each: bytes};
    });
}

/* at: of each side its point. */
function differencesAt(sides, at) {
    if (sides.some(side => side.rows === null))
        return largestFirst(categoriesOf(sides, at));
    let left = sides.map(({rows, points}, s) =>
        rows.filter(it => isAlive(it.row, points.state[at[s]])));
    const keys = [...left[0], ...left[1]][0]?.keys ?? [];
    keys.forEach((_, key) => { left = unpaired(left, key); });
    return largestFirst(groupsOf(left));
}

/* ---- words ----------------------------------------------------------------- */

const gapWords = bytes =>
    bytes === 0 ? 'no difference' : (bytes < 0 ? '-' : '+') +
        size(Math.abs(bytes));

function holds(group, s) {
    return group.count[s] === 1 ? size(group.bytes[s])
        : group.each[s] > 0 ? `${group.count[s]} x ${size(group.each[s])}`
        : `${size(group.bytes[s])} of ${group.count[s]}`;
}

function groupWords(group) {
    const sides = ['A', 'B'].filter((_, s) => group.count[s] > 0).map(
        letter => `${letter}: ${holds(group, letter === 'A' ? 0 : 1)}`);
    return `${gapWords(group.gap)}   ${sides.join('; ')}, ` +
           plain(data.categories[group.category][0]) +
           (group.name === null ? '' : `, of ${group.name}`);
}

/* ---- the figure ------------------------------------------------------------ */

const SAID = 5, HIGHER = NONE; /* groups at the cursor; the side of most */

class Overlay extends Figure {
    constructor(overlay) {
        super(overlay.end, 'Memory of two steps on one axis');
        this.phases = overlay.phases;
        this.sides = overlay.sides.map(side => readSide(side, overlay.by_name));
        this.points = merge(this.sides);
        this.cursor = {point: this.highest(HIGHER), part: 0};
        this.place();
        this.listen();
    }

    highest(s) {
        if (s === HIGHER)
            return highestOf(this.points.total);
        const best = highestOf(this.sides[s].points.total);
        return Math.max(0, this.points.of[s].indexOf(best));
    }

    place() {
        this.memory = {y: PHASE + 4, height: MEMORY};
        this.strip = {y: this.memory.y + MEMORY + AXIS + GAP, height: AGAIN};
        this.height = this.strip.y + AGAIN + 2 * GAP;
        this.top = Math.max(1, this.points.total[this.highest(HIGHER)]) * 1.06;
    }

    tick(t) {
        return `${+(100 * t / this.end).toPrecision(6)} %`;
    }

    /* Of the point at the cursor, worked out once. */
    found() {
        const {point} = this.cursor, {of} = this.points;
        if (this.last?.point !== point) {
            const at = [of[0][point], of[1][point]];
            const levels = this.sides.map(
                ({points}, s) => points.total[at[s]] || 0);
            this.last = {point, levels, groups: differencesAt(this.sides, at)};
        }
        return this.last;
    }

    words() {
        if (this.points.n === 0)
            return '';
        const {levels: [a, b], groups} = this.found(), {part} = this.cursor;
        const t = this.points.t[this.cursor.point];
        const phase = this.phases.find(it => t >= it[0] && t < it[1]);
        const from = Math.max(0, Math.min(part - 2, groups.length - SAID));
        const lines = [`A ${size(a)}, B ${size(b)}, B less A ` +
            `${gapWords(b - a)}, at ${(100 * t / this.end).toFixed(1)} % of ` +
            `the step${phase ? ', ' + phase[2] : ''}`];
        groups.slice(from, from + SAID).forEach((group, i) => lines.push(
            (from + i === part ? '▸ ' : '\u2003') + groupWords(group)));
        const others = groups.filter((_, i) => i < from || i >= from + SAID);
        const told = groups.reduce((sum, group) => sum + group.gap, 0);
        if (others.length > 0)
            lines.push(`\u2003${gapWords(others.reduce(
                (sum, group) => sum + group.gap, 0))} in ${others.length} more`);
        if (b - a !== told)
            lines.push(`\u2003${gapWords(b - a - told)} in smaller tensors ` +
                       `and rounding`);
        return lines.join('\n');
    }

    drawAll() {
        this.columnsOf = this.sides.map(side => this.columns(side.points));
        this.heights = this.sides.map(({points}, s) =>
            Float64Array.from(this.columnsOf[s], i => points.total[i] || 0));
        const [a, b] = this.heights, c = this.pen;
        for (let k = 0; k < a.length; k++) {
            if (a[k] === b[k])
                continue;
            const [low, high] = a[k] < b[k] ? [a[k], b[k]] : [b[k], a[k]];
            c.fillStyle = this.ink.sides[a[k] > b[k] ? 0 : 1] + '38';
            c.fillRect(LEFT + k, this.y(high), 1, this.y(low) - this.y(high));
        }
        this.heights.forEach((heights, s) => this.steps(
            heights, s, bytes => this.y(bytes)));
    }

    /* B is dashed: the two are told apart without colours. */
    steps(heights, s, y) {
        const c = this.pen;
        c.strokeStyle = this.ink.sides[s];
        c.lineWidth = s === 0 ? 2 : 1.5;
        c.setLineDash(s === 0 ? [] : [7, 2]);
        c.beginPath();
        heights.forEach((bytes, k) => {
            c.lineTo(LEFT + k, y(bytes));
            c.lineTo(LEFT + k + 1, y(bytes));
        });
        c.stroke();
        c.setLineDash([]);
        c.lineWidth = 1;
    }

    /* Of what is selected the bytes by column, of one side. */
    partOf(group, s) {
        const {points, rows} = this.sides[s], columns = this.columnsOf[s];
        if (group.name === null)
            return Float64Array.from(
                columns, i => points.levels[group.category][i] || 0);
        const heights = new Float64Array(columns.length + 1);
        const behind = state => {
            let low = 0, high = columns.length;
            while (low < high) {
                const middle = (low + high) >> 1;
                if (points.state[columns[middle]] < state)
                    low = middle + 1;
                else
                    high = middle;
            }
            return low;
        };
        for (const {row, name} of rows) {
            if (name !== group.name || row[CATEGORY] !== group.category)
                continue;
            heights[behind(row[FROM])] += row[BYTES];
            if (row[TO] !== NONE)
                heights[behind(row[TO])] -= row[BYTES];
        }
        for (let k = 1; k < heights.length; k++)
            heights[k] += heights[k - 1];
        return heights.subarray(0, columns.length);
    }

    drawPart() {
        const group = this.found().groups[this.cursor.part];
        const {y, height} = this.strip;
        this.line(LEFT, y + height, LEFT + this.inner, y + height,
                  this.ink.rule);
        if (!group)
            return;
        const parts = this.sides.map((_, s) => this.partOf(group, s));
        const most = Math.max(1, ...parts.map(part => part[highestOf(part)]));
        this.text('selected', LEFT - 6, y + 8, 'right');
        this.text(size(most), LEFT - 6, y + 24, 'right');
        parts.forEach((part, s) => this.steps(
            part, s, bytes => y + height * (1 - bytes / most)));
    }

    drawCursor() {
        if (this.points.n === 0)
            return;
        this.drawPart();
        const x = this.x(this.points.t[this.cursor.point]), c = this.pen;
        if (x < LEFT || x > LEFT + this.inner)
            return;
        this.line(x, PHASE, x, this.height - GAP, this.ink.ink, [2, 3]);
        this.found().levels.forEach((bytes, s) => {
            c.fillStyle = this.ink.sides[s];
            c.beginPath();
            c.arc(x, this.y(bytes), 4, 0, 7);
            c.fill();
        });
    }

    moveTo(point, part = 0) {
        super.moveTo(point, part);
    }

    climb(by) {
        const part = this.cursor.part - by, n = this.found().groups.length;
        if (part >= 0 && part < n)
            this.moveTo(this.cursor.point, part);
    }

    hover(x, y) {
        if (x < LEFT || x > LEFT + this.inner || y > this.height)
            return;
        const k = Math.min(this.of.length - 1, Math.floor(x - LEFT));
        if (this.of[k] === this.cursor.point)
            return;
        this.cursor = {point: this.of[k], part: 0};
        this.point();
    }

    jumps() {
        return [['Peak of A', 'a', () => this.highest(0)],
                ['Peak of B', 'b', () => this.highest(1)],
                ['Widest gap', 'd', () => highestOf(this.points.gap)]];
    }

    keys() {
        const own = {p: () => this.moveTo(this.highest(HIGHER))};
        for (const [, key, find] of this.jumps())
            own[key] = () => this.moveTo(find());
        return {...super.keys(), ...own};
    }

    tools() {
        return super.tools(this.jumps().map(
            ([words, , find]) => [words, () => this.moveTo(find())]));
    }

    legend() {
        return table([
            ['Step', 'name', s => el('span', {},
                el('span', {className: `swatch side${s}`}),
                `${s === 0 ? 'A' : 'B'}: ${this.sides[s].name}`)],
            ['Peak', 'number', s => size(
                this.sides[s].points.total[highestOf(
                    this.sides[s].points.total)] || 0)],
            ['At', 'number', s => `${(100 * this.points.t[this.highest(s)] /
                this.end).toFixed(1)} %`]
        ], [0, 1]);
    }
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The figure of a step: memory over time, streams and stages below it. */
/* ---- the chart ------------------------------------------------------------- */

const LEFT = 78, RIGHT = 12, PHASE = 18, MEMORY = 340, AXIS = 24, AGAIN = 56,
      LANE = 20, GAP = 10, FONT = '12px "Liberation Sans", Arial, sans-serif';

/* The least of 1, 2, 5 times a power of ten that is at least so much. */
function roundUp(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return power * [1, 2, 5, 10].find(m => m * power >= value * (1 - 1e-9));
}

class Chart {
    constructor(variant) {
        this.variant = variant;
        this.step = variant.step;
        this.points = decode(this.step);
        this.from = 0;
        this.to = this.step.end;
        this.canvas = el('canvas', {className: 'chart', tabIndex: 0});
        this.still = el('canvas');
        this.canvas.setAttribute('role', 'img');
        this.canvas.setAttribute('aria-describedby', 'at');
        this.canvas.setAttribute('aria-label', 'Memory over time by category; ' +
            'arrow keys move, plus and minus zoom');
        this.at = el('div', {className: 'at', id: 'at'});
        this.at.setAttribute('role', 'status');
        this.cursor = {point: this.highest(), part: this.largest()};
        this.place();
        this.listen();
    }

    highest() {
        const total = this.points.total;
        let best = 0;
        for (let i = 1; i < this.points.n; i++)
            if (total[i] > total[best])
                best = i;
        return best;
    }

    /* The largest tensor of the peak: who opens the page sees it first. */
    largest() {
        const parts = pile(this.step, this.points, this.highest());
        const named = parts.filter(part => part.row !== null);
        return (named.length > 0 ? named : parts).reduce(
            (most, part) => most === null ||
                part.to - part.from > most.to - most.from ? part : most, null);
    }

    /* What lies where, from above. */
    place() {
        const step = this.step;
        let y = PHASE + 4;
        this.memory = {y, height: MEMORY};
        y += MEMORY + AXIS;
        this.again = step.again_ns > 0 ? {y: y + GAP, height: AGAIN} : null;
        y += this.again ? AGAIN + 2 * GAP : 0;
        this.lanes = [];
        for (const lane of step.lanes)
            this.lanes.push({y: y + this.lanes.length * LANE, lane});
        y += this.lanes.length > 0 ? this.lanes.length * LANE + GAP : 0;
        this.stages = step.stages.map((stage, i) => ({y: y + i * LANE, stage}));
        this.height = y + this.stages.length * LANE + GAP;
        const most = Math.max(this.points.total[this.highest()] || 1,
                              ...step.reserved.map(pair => pair[1]));
        const usable = this.variant.usable_bytes;
        this.limit = usable > 0 && usable < 2 * most ? usable : 0;
        this.top = Math.max(most, this.limit) * 1.06;
    }

    x(t) {
        return LEFT + (t - this.from) / (this.to - this.from) * this.inner;
    }

    t(x) {
        return this.from + (x - LEFT) / this.inner * (this.to - this.from);
    }

    y(bytes) {
        return this.memory.y + this.memory.height * (1 - bytes / this.top);
    }

    /* By column the point that is drawn in it: the highest of those in it, or
     * the last one before. */
    columns() {
        const points = this.points, n = Math.max(1, Math.round(this.inner));
        const of = new Int32Array(n), each = (this.to - this.from) / n;
        let i = pointAt(points, this.from);
        for (let c = 0; c < n; c++) {
            const end = this.from + (c + 1) * each;
            let best = i;
            while (i + 1 < points.n && points.t[i + 1] < end) {
                i++;
                if (points.total[i] > points.total[best] ||
                    points.t[best] < end - each)
                    best = i;
            }
            of[c] = best;
        }
        return of;
    }

    draw() {
        const style = getComputedStyle(document.documentElement);
        const color = name => style.getPropertyValue(name).trim();
        const width = this.canvas.parentElement.clientWidth || 1000;
        const ratio = window.devicePixelRatio || 1;
        this.inner = Math.max(50, width - LEFT - RIGHT);
        this.canvas.width = Math.round(width * ratio);
        this.canvas.height = Math.round(this.height * ratio);
        this.canvas.style.height = this.height + 'px';
        this.still.width = this.canvas.width;
        this.still.height = this.canvas.height;
        const c = this.still.getContext('2d');
        this.pen = c;
        this.ink = {ink: color('--ink'), grey: color('--grey'),
                    rule: color('--rule'), paper: color('--paper'),
                    mark: color('--mark')};
        c.scale(ratio, ratio);
        c.font = FONT;
        c.fillStyle = this.ink.paper;
        c.fillRect(0, 0, width, this.height);
        this.of = this.columns();
        this.drawGrid();
        this.drawPhases();
        this.drawStack();
        this.drawLines();
        this.drawAgain();
        this.drawLanes();
        this.drawStages();
        this.point();
    }

    /* The still picture and the cursor over it: all that a move changes. */
    point() {
        const c = this.canvas.getContext('2d');
        const ratio = window.devicePixelRatio || 1;
        c.setTransform(1, 0, 0, 1, 0, 0);
        c.drawImage(this.still, 0, 0);
        c.scale(ratio, ratio);
        this.pen = c;
        this.drawCursor();
        this.at.textContent = cursorWords(this.variant, this.points,
                                          this.cursor);
    }

    text(words, x, y, align = 'left', color = this.ink.grey) {
        this.pen.fillStyle = color;
        this.pen.textAlign = align;
        this.pen.textBaseline = 'middle';
        this.pen.fillText(words, x, y);
    }

    line(x0, y0, x1, y1, color, dash = []) {
        const c = this.pen;
        c.strokeStyle = color;
        c.setLineDash(dash);
        c.beginPath();
        c.moveTo(x0, y0);
        c.lineTo(x1, y1);
        c.stroke();
        c.setLineDash([]);
    }

    drawGrid() {
        const unit = this.top >= GIB ? GIB : MIB;
        const each = roundUp(this.top / unit / 6);
        for (let v = 0; v * unit <= this.top; v += each) {
            const y = this.y(v * unit);
            this.line(LEFT, y, LEFT + this.inner, y, this.ink.rule);
            this.text(`${+v.toPrecision(6)} ${unit === GIB ? 'GiB' : 'MiB'}`,
                      LEFT - 6, y, 'right');
        }
        const span = this.to - this.from, ticks = Math.max(2, this.inner / 110);
        const every = roundUp(span / ticks), y = this.memory.y + MEMORY;
        for (let k = Math.ceil(this.from / every); k * every <= this.to; k++) {
            const x = this.x(k * every);
            this.line(x, y, x, y + 4, this.ink.grey);
            const words = `${this.step.timed ? tick(k * every, span)
                                             : k * every}`;
            const half = this.pen.measureText(words).width / 2;
            this.text(words, Math.min(x, LEFT + this.inner + RIGHT - half),
                      y + 13, 'center');
        }
    }

    /* From a to b, as far as it is in sight. */
    box(a, b, y, height, color, border = null) {
        const x0 = Math.max(LEFT, this.x(a));
        const x1 = Math.min(LEFT + this.inner, this.x(b));
        if (x1 <= x0)
            return 0;
        this.pen.fillStyle = color;
        this.pen.fillRect(x0, y, Math.max(x1 - x0, 0.5), height);
        if (border !== null && x1 - x0 > 3) {
            this.pen.strokeStyle = border;
            this.pen.strokeRect(x0, y, x1 - x0, height);
        }
        return x1 - x0;
    }

    drawPhases() {
        for (const [from, to, name] of this.step.phases) {
            const wide = this.box(from, to, 0, PHASE, data.phases[name]);
            if (wide > this.pen.measureText(name).width + 8)
                this.text(name, Math.max(LEFT, this.x(from)) + wide / 2,
                          PHASE / 2 + 1, 'center', '#1a1a1a');
        }
    }

    drawStack() {
        const c = this.pen, n = this.of.length, base = new Float64Array(n);
        for (const category of data.order) {
            const level = this.points.levels[category];
            c.fillStyle = data.categories[category][1];
            c.beginPath();
            for (let k = 0; k < n; k++) {
                const y = this.y(base[k] + (level[this.of[k]] || 0));
                c.lineTo(LEFT + k, y);
                c.lineTo(LEFT + k + 1, y);
            }
            for (let k = n - 1; k >= 0; k--) {
                const y = this.y(base[k]);
                c.lineTo(LEFT + k + 1, y);
                c.lineTo(LEFT + k, y);
                base[k] += level[this.of[k]] || 0;
            }
            c.fill();
        }
    }

    /* Of a step function [[t, value], ...] the outline. */
    outline(pairs, y, color) {
        const c = this.pen, right = LEFT + this.inner;
        c.save();
        c.beginPath();
        c.rect(LEFT, 0, this.inner, this.height);
        c.clip();
        c.strokeStyle = color;
        c.beginPath();
        pairs.forEach(([t, value], i) => {
            c.lineTo(this.x(t), y(value));
            c.lineTo(i + 1 < pairs.length ? this.x(pairs[i + 1][0])
                                          : Math.max(right, this.x(t)),
                     y(value));
        });
        c.stroke();
        c.restore();
    }

    drawLines() {
        this.outline(this.step.reserved, bytes => this.y(bytes), this.ink.ink);
        if (this.limit > 0) {
            const y = this.y(this.limit);
            const words = `usable ${size(this.limit)}`;
            const wide = this.pen.measureText(words).width;
            this.line(LEFT, y, LEFT + this.inner, y, this.ink.mark, [6, 4]);
            this.pen.fillStyle = this.ink.paper;
            this.pen.fillRect(LEFT + this.inner - wide - 8, y - 17, wide + 8,
                              15);
            this.text(words, LEFT + this.inner - 4, y - 9, 'right',
                      this.ink.mark);
        }
    }

    drawAgain() {
        if (!this.again)
            return;
        const {y, height} = this.again, most = this.step.again_ns;
        this.text('run again', LEFT - 6, y + 8, 'right');
        this.text(time(most), LEFT - 6, y + 24, 'right');
        this.line(LEFT, y + height, LEFT + this.inner, y + height,
                  this.ink.rule);
        this.outline(this.step.again, ns => y + height * (1 - ns / most),
                     data.works.find(work => work[0] === 'recompute')[1]);
    }

    drawLanes() {
        for (const {y, lane} of this.lanes) {
            this.text(lane.name, LEFT - 6, y + LANE / 2, 'right');
            this.drawSlices(lane.slices, y);
        }
    }

    drawSlices(slices, y) {
        for (const slice of slices) {
            const sum = slice.reduce(
                (all, v, k) => k > 2 && k % 2 === 1 ? all + v : all, 0);
            let at = y + 2;
            for (let k = 2; k < slice.length; k += 2) {
                const part = (LANE - 4) * slice[k + 1] / sum;
                this.box(slice[0], slice[1], at, part,
                         data.works[slice[k]][1]);
                at += part;
            }
        }
    }

    drawStages() {
        for (const {y, stage} of this.stages) {
            this.text(`rank ${stage.rank}`, LEFT - 6, y + LANE / 2, 'right');
            this.drawSlices(stage.slices, y);
            for (const turn of stage.turns) {
                const wide = this.box(turn[0], turn[1], y + 2, LANE - 4,
                                      data.turns[turn[2]], this.ink.paper);
                if (wide > 18 && turn[2] !== 'optimizer')
                    this.text(turn[3], (Math.max(LEFT, this.x(turn[0])) +
                              Math.min(LEFT + this.inner, this.x(turn[1]))) / 2,
                              y + LANE / 2, 'center', '#ffffff');
            }
        }
    }

    /* The band of the tensor at the cursor, and where the cursor is. */
    drawCursor() {
        const c = this.pen, points = this.points, {point, part} = this.cursor;
        if (points.n === 0)
            return;
        if (part && part.row)
            this.drawBand(part.row);
        const x = this.x(points.t[point]);
        if (x < LEFT || x > LEFT + this.inner)
            return;
        this.line(x, PHASE, x, this.height - GAP, this.ink.ink, [2, 3]);
        c.fillStyle = this.ink.ink;
        c.beginPath();
        c.arc(x, this.y(part ? (part.from + part.to) / 2
                             : points.total[point]), 3.5, 0, 7);
        c.fill();
    }

    drawBand(row) {
        const c = this.pen, points = this.points;
        const below = this.step.tensors.rows.filter(
            other => other[CATEGORY] === row[CATEGORY]);
        below.length = below.indexOf(row);
        const order = data.order.slice(0, data.order.indexOf(row[CATEGORY]));
        c.fillStyle = this.ink.ink + 'aa';
        for (let k = 0; k < this.of.length; k++) {
            const i = this.of[k], state = points.state[i];
            if (!isAlive(row, state))
                continue;
            let base = 0;
            for (const category of order)
                base += points.levels[category][i];
            for (const other of below)
                if (isAlive(other, state))
                    base += other[BYTES];
            const y = this.y(base + row[BYTES]);
            c.fillRect(LEFT + k, y, 1, Math.max(1, this.y(base) - y));
        }
    }

    /* ---- moving --------------------------------------------------------- */

    show(from, to) {
        const least = Math.max(1, this.step.end / 1e6), end = this.step.end;
        const span = Math.min(end, Math.max(least, to - from));
        this.from = Math.min(Math.max(0, (from + to - span) / 2), end - span);
        this.to = this.from + span;
        this.draw();
    }

    zoom(by, around = this.points.t[this.cursor.point] || 0) {
        const at = around >= this.from && around <= this.to
            ? around : (this.from + this.to) / 2;
        this.show(at - (at - this.from) / by, at + (this.to - at) / by);
    }

    moveTo(point, part = null) {
        this.cursor = {point, part};
        const t = this.points.t[point], span = this.to - this.from;
        if (t < this.from || t > this.to)
            this.show(t - span / 2, t + span / 2);
        else
            this.point();
    }

    /* To the next column that shows another point. */
    walk(by) {
        const now = this.cursor.point, of = this.of;
        if (by > 0 ? now < of[0] : now > of[of.length - 1])
            return this.moveTo(by > 0 ? of[0] : of[of.length - 1]);
        const next = by > 0 ? of.find(i => i > now) : of.findLast(i => i < now);
        this.moveTo(next ?? Math.min(this.points.n - 1, Math.max(0, now + by)));
    }

    climb(by) {
        const parts = pile(this.step, this.points, this.cursor.point);
        const now = this.cursor.part, k = now === null ? NONE
            : parts.findIndex(part => part.from === now.from);
        const next = k === NONE ? (by > 0 ? 0 : parts.length - 1) : k + by;
        if (next >= 0 && next < parts.length)
            this.moveTo(this.cursor.point, parts[next]);
    }

    hover(x, y) {
        const {memory} = this;
        if (x < LEFT || x > LEFT + this.inner)
            return;
        if (y < memory.y + memory.height + AXIS) {
            const k = Math.min(this.of.length - 1, Math.floor(x - LEFT));
            const point = this.of[k];
            const bytes = (1 - (y - memory.y) / memory.height) * this.top;
            const part = pile(this.step, this.points, point)
                .find(it => bytes >= it.from && bytes < it.to) ?? null;
            this.cursor = {point, part};
            this.point();
            return;
        }
        const t = this.t(x);
        const inside = it => y >= it.y && y < it.y + LANE;
        const lane = this.lanes.find(inside), stage = this.stages.find(inside);
        const at = all => all.find(it => t >= it[0] && t < it[1]);
        const of = lane ? lane.lane : stage ? stage.stage : null;
        const slice = of && at(of.slices), turn = stage && at(of.turns);
        if (slice)
            this.at.textContent = sliceWords(this.step, of, slice);
        else if (turn)
            this.at.textContent = turnWords(this.step, of, turn);
    }

    listen() {
        const canvas = this.canvas;
        const place = event => {
            const box = canvas.getBoundingClientRect();
            return [event.clientX - box.left, event.clientY - box.top];
        };
        let start = null;
        canvas.addEventListener('pointerdown', event => {
            start = place(event)[0];
        });
        canvas.addEventListener('pointermove', event => {
            this.hover(...place(event));
        });
        canvas.addEventListener('pointerup', event => {
            const end = place(event)[0];
            if (start !== null && Math.abs(end - start) > 8)
                this.show(this.t(Math.min(start, end)),
                          this.t(Math.max(start, end)));
            start = null;
        });
        canvas.addEventListener('dblclick', () => this.show(0, this.step.end));
        canvas.addEventListener('wheel', event => {
            if (!event.ctrlKey && !event.metaKey && !event.shiftKey)
                return;
            event.preventDefault();
            const away = event.deltaY || event.deltaX;
            this.zoom(away < 0 ? 1.25 : 0.8, this.t(place(event)[0]));
        }, {passive: false});
        canvas.addEventListener('keydown', event => {
            const act = this.keys()[event.key];
            if (!act || event.ctrlKey || event.metaKey || event.altKey)
                return;
            event.preventDefault();
            act();
        });
    }

    keys() {
        return {
            ArrowLeft: () => this.walk(-1), ArrowRight: () => this.walk(1),
            ArrowUp: () => this.climb(1), ArrowDown: () => this.climb(-1),
            '+': () => this.zoom(2), '=': () => this.zoom(2),
            '-': () => this.zoom(0.5), '0': () => this.show(0, this.step.end),
            p: () => this.moveTo(this.highest(), this.largest()),
            Home: () => this.moveTo(0),
            End: () => this.moveTo(Math.max(0, this.points.n - 1))
        };
    }

    tools() {
        const button = (words, act) =>
            el('button', {type: 'button', textContent: words, onclick: act});
        return el('div', {className: 'tools'},
            button('Zoom in', () => this.zoom(2)),
            button('Zoom out', () => this.zoom(0.5)),
            button('Whole step', () => this.show(0, this.step.end)),
            button('Peak', () => this.moveTo(this.highest(), this.largest())));
    }

    legend() {
        const points = this.points, peak = this.highest();
        return table([
            ['Category', '', c => el('span', {}, swatch(data.categories[c][1]),
                                     plain(data.categories[c][0]))],
            ['At the peak', 'number', c => size(points.levels[c][peak])],
            ['At most', 'number', c => size(points.levels[c].reduce(
                (most, bytes) => Math.max(most, bytes), 0))]
        ], [...data.order].reverse().filter(
            c => points.levels[c].some(bytes => bytes > 0)));
    }

    /* What the colours of streams and stages are. */
    works() {
        const {lanes, stages} = this.step;
        const used = new Set([...lanes, ...stages].flatMap(
            row => row.slices.flatMap(
                slice => slice.filter((v, k) => k >= 2 && k % 2 === 0))));
        const turns = new Set(this.step.stages.flatMap(
            stage => stage.turns.map(turn => turn[2])));
        const looks = [...used].sort((a, b) => a - b).map(k => data.works[k]);
        for (const turn of turns)
            if (!looks.some(look => look[0] === turn))
                looks.push([plain(turn), data.turns[turn]]);
        return looks.length === 0 ? null : el('p', {className: 'faint'},
            ...looks.flatMap(([words, color]) =>
                [swatch(color), words + '  ']));
    }
}

/* Of a time axis: as many digits as tell two ticks apart. */
function tick(t, span) {
    const [unit, by] = span < 2e6 ? ['µs', 1e3] : span < 2e9 ? ['ms', 1e6]
                                                             : ['s', 1e9];
    return `${+(t / by).toPrecision(7)} ${unit}`;
}

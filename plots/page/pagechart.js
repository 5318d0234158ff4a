/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The figure of a step: memory over time, streams and stages below it. */
/* ---- the chart ------------------------------------------------------------- */

class Chart extends Figure {
    constructor(variant) {
        super(variant.step.end, 'Memory over time by category');
        this.variant = variant;
        this.step = variant.step;
        this.phases = this.step.phases;
        this.points = decode(this.step);
        this.cursor = {point: this.highest(), part: this.largest()};
        this.place();
        this.listen();
    }

    highest() {
        return highestOf(this.points.total);
    }

    words() {
        return cursorWords(this.variant, this.points, this.cursor);
    }

    tick(t, span) {
        return this.step.timed ? tick(t, span) : `${t}`;
    }

    drawAll() {
        this.drawStack();
        this.drawLines();
        this.drawAgain();
        this.drawLanes();
        this.drawStages();
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

    peak() {
        this.moveTo(this.highest(), this.largest());
    }

    keys() {
        return {...super.keys(), p: () => this.peak()};
    }

    tools() {
        return super.tools([['Peak', () => this.peak()]]);
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


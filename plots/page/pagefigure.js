/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What figures over an axis have in common: a canvas to zoom into and to walk
 * over with the pointer and the keys.  Chart and Overlay say what is drawn. */
/* ---- the figure ------------------------------------------------------------ */

const LEFT = 78, RIGHT = 12, PHASE = 18, MEMORY = 340, AXIS = 24, AGAIN = 56,
      LANE = 20, GAP = 10, FONT = '12px "Liberation Sans", Arial, sans-serif';

/* The least of 1, 2, 5 times a power of ten that is at least so much. */
function roundUp(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return power * [1, 2, 5, 10].find(m => m * power >= value * (1 - 1e-9));
}

const highestOf = values => {
    let best = 0;
    for (let i = 1; i < values.length; i++)
        if (values[i] > values[best])
            best = i;
    return best;
};

/* Of points {n, t, total} by a column each. */
class Figure {
    constructor(end, label) {
        this.end = end;
        this.from = 0;
        this.to = end;
        this.canvas = el('canvas', {className: 'chart', tabIndex: 0});
        this.still = el('canvas');
        this.canvas.setAttribute('role', 'img');
        this.canvas.setAttribute('aria-describedby', 'at');
        this.canvas.setAttribute('aria-label', label +
            '; arrow keys move, plus and minus zoom');
        this.at = el('div', {className: 'at', id: 'at'});
        this.at.setAttribute('role', 'status');
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
    columns(points = this.points) {
        const n = Math.max(1, Math.round(this.inner));
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
                    mark: color('--mark'),
                    sides: [color('--first'), color('--second')]};
        c.scale(ratio, ratio);
        c.font = FONT;
        c.fillStyle = this.ink.paper;
        c.fillRect(0, 0, width, this.height);
        this.of = this.columns();
        this.drawGrid();
        this.drawPhases();
        this.drawAll();
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
        this.at.textContent = this.words();
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
            const words = this.tick(k * every, span);
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
        for (const [from, to, name] of this.phases) {
            const wide = this.box(from, to, 0, PHASE, data.phases[name]);
            if (wide > this.pen.measureText(name).width + 8)
                this.text(name, Math.max(LEFT, this.x(from)) + wide / 2,
                          PHASE / 2 + 1, 'center', '#1a1a1a');
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

    /* ---- moving --------------------------------------------------------- */

    show(from, to) {
        const end = this.end, least = Math.max(1, end / 1e6);
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
        canvas.addEventListener('dblclick', () => this.show(0, this.end));
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
            '-': () => this.zoom(0.5), '0': () => this.show(0, this.end),
            Home: () => this.moveTo(0),
            End: () => this.moveTo(Math.max(0, this.points.n - 1))
        };
    }

    /* buttons: [words, what it does] of the figure's own. */
    tools(buttons) {
        const button = ([words, act]) =>
            el('button', {type: 'button', textContent: words, onclick: act});
        return el('div', {className: 'tools'}, ...[
            ['Zoom in', () => this.zoom(2)],
            ['Zoom out', () => this.zoom(0.5)],
            ['Whole step', () => this.show(0, this.end)],
            ...buttons].map(button));
    }
}

/* Of a time axis: as many digits as tell two ticks apart. */
function tick(t, span) {
    const [unit, by] = span < 2e6 ? ['µs', 1e3] : span < 2e9 ? ['ms', 1e6]
                                                             : ['s', 1e9];
    return `${+(t / by).toPrecision(7)} ${unit}`;
}

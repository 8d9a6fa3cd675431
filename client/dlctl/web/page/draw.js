/* Timelines. A rank's: how its trainer's time was spent, as areas, and the batches that were ready, as a line. A job's: the
 * workers that each stage has kept busy, as areas. */
const style = {};

function read_style() {
  const computed = getComputedStyle(document.documentElement);
  for (const name of ['line', 'soft', 'ready', 'wait', 'busy', 's0', 's1', 's2', 's3', 's4', 's5', 's6', 's7', 's8']) style[name] = computed.getPropertyValue(`--${name}`).trim();
}

/* Runs of points without a gap between them. */
function runs_of(points, from, has) {
  const runs = [];
  let run = null, last = null;
  for (const point of points) {
    if (point.t < from - 2000) continue;
    if (!has(point)) {
      run = null;
    } else {
      if (!run || point.t - last > GAP_MS) runs.push(run = []);
      run.push(point);
    }
    last = point.t;
  }
  return runs;
}

function fill_area(context, run, x_of, y_of, low, high, colour) {
  context.beginPath();
  run.forEach((point, i) => context[i ? 'lineTo' : 'moveTo'](x_of(point), y_of(high(point))));
  for (let i = run.length - 1; i >= 0; i--) context.lineTo(x_of(run[i]), y_of(low(run[i])));
  context.closePath();
  context.fillStyle = colour;
  context.fill();
}

/* Fits the canvas to its place on the screen, so that lines are sharp. */
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.round(canvas.clientWidth * ratio), h = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  return context;
}

/* How much was ready, over five seconds: a look at a single moment jumps. */
function smooth(run, i) {
  const near = run.slice(Math.max(0, i - 2), i + 3);
  return near.reduce((sum, point) => sum + point.ready, 0) / near.length;
}

/* Where a moment and a value from 0 to 1 are. */
function plot_of(canvas, now_ms, span_ms) {
  const w = canvas.clientWidth, h = canvas.clientHeight, from = now_ms - span_ms;
  return {context: prepare(canvas), w, h, from, x_of: (point) => (point.t - from) / span_ms * w,
          y_of: (value) => h - 1 - Math.min(1, value) * (h - 3)};
}

/* A mark at each 30 s, or 2 min. */
function draw_marks({context, w, h}, span_ms) {
  const n = span_ms > 120000 ? 5 : 4;
  context.strokeStyle = style.line;
  context.lineWidth = 1;
  for (let i = 1; i < n; i++) {
    const x = Math.round(w * i / n) + 0.5;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, h);
    context.stroke();
  }
}

function draw_timeline(canvas, points, now_ms, span_ms) {
  if (!canvas.clientWidth) return; // not shown
  const plot = plot_of(canvas, now_ms, span_ms), {context, from, x_of, y_of} = plot;

  for (const run of runs_of(points, from, (point) => point.wait !== null)) {
    fill_area(context, run, x_of, y_of, () => 0, (point) => point.wait, style.wait);
    fill_area(context, run, x_of, y_of, (point) => point.wait, (point) => point.wait + point.busy, style.busy);
  }
  draw_marks(plot, span_ms);
  context.strokeStyle = style.ready;
  context.lineWidth = 1.5;
  context.lineJoin = 'round';
  for (const run of runs_of(points, from, () => true)) {
    context.beginPath();
    run.forEach((point, i) => context[i ? 'lineTo' : 'moveTo'](x_of(point), y_of(smooth(run, i))));
    context.stroke();
  }
}

/* `stages`: [{name, colour}], the first one at the bottom; the top is when all of n_workers are busy. */
function draw_stages(canvas, points, stages, n_workers, now_ms, span_ms) {
  if (!canvas.clientWidth) return;
  const plot = plot_of(canvas, now_ms, span_ms), {context, from, x_of, y_of} = plot;
  for (const run of runs_of(points, from, (point) => point.cpus !== null)) {
    const below = new Map(run.map((point) => [point, 0]));
    const top = (point, name) => below.get(point) + (point.stages[name] || 0) / n_workers;
    for (const {name, colour} of stages) {
      fill_area(context, run, x_of, y_of, (point) => below.get(point), (point) => top(point, name), colour);
      for (const point of run) below.set(point, top(point, name));
    }
  }
  draw_marks(plot, span_ms);
}

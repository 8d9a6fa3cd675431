/* What the server has told, and what follows from it: rates are differences of the daemon's counters. */
const HISTORY_MS = 600 * 1000;
const GAP_MS = 5000; // seconds further apart are not joined: nobody knows what happened between them

const store = {
  now: null,         // the last document
  datasets: [],
  errors: [],
  known: {sequence: 0, datasets: 0, errors: 0},
  series: new Map(), // "user name" -> {points, ranks: Map(rank -> points)}
  node: [],          // points of the daemon as a whole
  last_second: null,
  lost_since: 0,     // when the server itself stopped answering
};

/* Jobs of two users may have the same name. */
function user_of(job) {
  return job.user || (job.ranks.length ? job.ranks[0].user || '' : '');
}

function job_key(job) {
  return `${user_of(job)} ${job.name}`;
}

/* Points are kept as rows of numbers, the oldest first. */
function push(points, point) {
  points.push(point);
  while (points.length && point.t - points[0].t > HISTORY_MS) points.shift();
}

function series_of(key) {
  if (!store.series.has(key)) store.series.set(key, {points: [], ranks: new Map()});
  return store.series.get(key);
}

/* A rank of a second: [rank, batches, ready, leased, slots, wait_ns, busy_ns]; the last two if its client tells them. */
function rank_point(t, seconds, before, after) {
  const [, batches, ready, leased, slots, wait, busy] = after;
  const point = {t, ready: ready / Math.max(1, slots - leased), has_ready: ready > 0, rate: null, wait: null, busy: null};
  if (!before || seconds <= 0 || batches < before[1]) return point; // another run
  point.rate = (batches - before[1]) / seconds;
  if (wait !== undefined && wait >= before[5] && busy >= before[6]) {
    point.wait = (wait - before[5]) / 1e9 / seconds;
    point.busy = (busy - before[6]) / 1e9 / seconds;
  }
  return point;
}

/* How many workers each stage has kept busy in this second. */
function stage_workers(seconds, before, after) {
  const taken = {};
  for (const [name, ns] of Object.entries(after || {})) {
    const ns_before = (before || {})[name] || 0;
    if (ns > ns_before) taken[name] = (ns - ns_before) / 1e9 / seconds;
  }
  return taken;
}

function take_job(second, seconds, before, after) {
  if (before) seconds = Math.max(0, (after.now_ns - before.now_ns) / 1e9); // the daemon's own clock tells best
  const series = series_of(job_key(after)), t = second.unix_ms;
  const old = new Map(before ? before.ranks.map((rank) => [rank[0], rank]) : []);
  const point = {t, rate: 0, cpus: null, stages: {}, samples: null};
  for (const rank of after.ranks) {
    if (!series.ranks.has(rank[0])) series.ranks.set(rank[0], []);
    const made = rank_point(t, seconds, old.get(rank[0]), rank);
    push(series.ranks.get(rank[0]), made);
    point.rate += made.rate || 0;
  }
  if (before && seconds > 0 && after.worker_ns >= before.worker_ns) {
    point.cpus = (after.worker_ns - before.worker_ns) / 1e9 / seconds;
    point.stages = stage_workers(seconds, before.stages, after.stages);
    if (after.n_samples >= before.n_samples) point.samples = (after.n_samples - before.n_samples) / seconds;
  }
  push(series.points, point);
}

/* The daemon as a whole, jobs that have ended since then included. */
function node_point(second, seconds, before) {
  const point = {t: second.unix_ms, cpus: null, read: null};
  if (seconds > 0 && second.worker_ns >= before.worker_ns) point.cpus = (second.worker_ns - before.worker_ns) / 1e9 / seconds;
  if (seconds > 0 && second.n_bytes_read >= before.n_bytes_read) point.read = (second.n_bytes_read - before.n_bytes_read) / seconds;
  return point;
}

function take_second(second) {
  const last = store.last_second;
  const seconds = last && second.unix_ms - last.unix_ms <= GAP_MS ? (second.unix_ms - last.unix_ms) / 1000 : 0;
  const before = new Map(seconds > 0 ? last.jobs.map((job) => [job_key(job), job]) : []);
  for (const job of second.jobs) take_job(second, seconds, before.get(job_key(job)), job);
  push(store.node, node_point(second, seconds, last));
  store.last_second = second;
}

function forget_old(now_ms) {
  for (const [key, series] of store.series) {
    const last = series.points[series.points.length - 1];
    if (!last || now_ms - last.t > HISTORY_MS) store.series.delete(key);
  }
}

function take(document_) {
  if (store.now && store.now.run !== document_.run) { // another process answers: all is told anew
    store.series.clear();
    store.node = [];
    store.last_second = null;
    store.known = {sequence: 0, datasets: 0, errors: 0};
    store.now = null;
    return false;
  }
  store.now = document_;
  if (document_.datasets) store.datasets = document_.datasets;
  if (document_.errors) store.errors = document_.errors;
  for (const second of document_.seconds) take_second(second);
  forget_old(document_.now_unix_ms);
  store.known = {sequence: document_.sequence, datasets: document_.datasets_version, errors: document_.errors_version};
  return true;
}

async function ask() {
  const {sequence, datasets, errors} = store.known;
  try {
    const reply = await fetch(`status.json?since=${sequence}&datasets=${datasets}&errors=${errors}`,
                              {cache: 'no-store', signal: AbortSignal.timeout(8000)});
    if (!reply.ok) throw new Error((await reply.text()).trim());
    if (!take(await reply.json())) return ask();
    store.lost_since = 0;
  } catch (error) {
    store.lost_since = store.lost_since || Date.now();
  }
}

/* The mean of a value over the last seconds; null: it is not known. */
function mean(points, name, seconds = 10) {
  let sum = 0, n = 0;
  for (let i = points.length - 1; i >= 0 && points[points.length - 1].t - points[i].t < seconds * 1000; i--)
    if (points[i][name] !== null) {
      sum += Number(points[i][name]);
      n++;
    }
  return n ? sum / n : null;
}

/* Stages of the last minute, as shares of their sum, the largest first. */
function stage_sums(points, seconds = 60) {
  const sums = new Map();
  let all = 0;
  for (let i = points.length - 1; i >= 0 && points[points.length - 1].t - points[i].t < seconds * 1000; i--)
    for (const [name, workers] of Object.entries(points[i].stages)) {
      sums.set(name, (sums.get(name) || 0) + workers);
      all += workers;
    }
  return [...sums].map(([name, sum]) => ({name, share: sum / all})).sort((a, b) => b.share - a.share);
}

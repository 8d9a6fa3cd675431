/* What is true of the whole daemon: its facts, whether it is there, the verdicts, and what to do if there is no job. */
function workers_busy() {
  let sum = mean(store.node, 'cpus');
  if (sum !== null) return sum;
  for (const job of store.now.jobs) {
    const cpus = mean(series_of(job_key(job)).points, 'cpus');
    if (cpus !== null) sum = (sum || 0) + cpus;
  }
  return sum;
}

const FACTS = [
  ['Version', (status) => ({text: status.version})],
  ['Up', (status) => ({text: duration(status.up_seconds)})],
  ['Memory', (status) => ({text: `${bytes(status.memory_used_bytes)} of ${bytes(status.memory_limit_bytes)}`,
                           full: status.memory_used_bytes / status.memory_limit_bytes})],
  ['Workers', (status) => {
    const all = workers_busy(), busy = all && Math.min(all, status.n_workers); // a sample is counted when it is complete
    return {text: busy === null ? `${status.n_workers}` : `${rate(busy)} of ${status.n_workers} busy`, full: (busy || 0) / status.n_workers};
  }],
  ['Samples', () => {
    const rates = store.now.jobs.map((job) => means_of(job, series_of(job_key(job))).samples).filter((x) => x !== null);
    return {text: rates.length ? `${rate(rates.reduce((a, b) => a + b))} /s` : '–'};
  }],
  ['Reads', () => { const read = mean(store.node, 'read'); return {text: read === null ? '–' : `${bytes(read)}/s`}; }],
  ['Ranks', () => ({text: count(store.now.jobs.reduce((sum, job) => sum + job.ranks.length, 0))})],
];

const fact_cells = FACTS.map(([name]) => {
  const value = make('dd'), bar = make('i'), meter = make('div', {class: 'meter'}, bar);
  by('facts').append(make('div', {}, make('dt', {}, name), value, meter));
  return {value, meter, bar};
});

function render_facts(status) {
  FACTS.forEach(([, describe], i) => {
    const {text, full} = status ? describe(status) : {text: '–'}, cell = fact_cells[i];
    say(cell.value, text);
    cell.meter.style.visibility = full === undefined ? 'hidden' : 'visible';
    width(cell.bar, full || 0);
    kind(cell.meter, 'class', full > 0.92 ? 'meter full' : 'meter');
  });
}

/* Who does not answer: the process that serves this page, or the daemon behind it. */
function away_text() {
  if (store.lost_since)
    return `dlctl web has not answered for ${duration((Date.now() - store.lost_since) / 1000)}. ` +
           'Start it again at this address; this page continues by itself.';
  if (!store.now || !store.now.away) return '';
  const since = Math.max(0, store.now.now_unix_ms / 1000 - store.now.away_since_unix);
  return `The daemon has been away for ${duration(since)}: ${store.now.away}. This page continues by itself when it is back.`;
}

function render_away() {
  const text = away_text(), status = store.now && store.now.status;
  show(by('away'), text !== '');
  say(by('away'), text);
  document.body.classList.toggle('is-away', text !== '');
  say(by('state'), text ? 'away' : status ? status.state : '…');
  kind(by('state'), 'class', `pill ${text ? 'bad' : status && status.state === 'serving' ? 'good' : ''}`);
  const n = store.now ? store.now.jobs.length : 0;
  document.title = `${text ? 'away · ' : n ? `${plural(n, 'job')} · ` : ''}dataloaderd ${store.now ? store.now.host : ''}`;
}

const verdict_rows = new Map();

function create_verdict() {
  const dot = make('span', {class: 'dot'}), name = make('b'), text = make('span');
  const link = make('a', {href: '#'}, dot, name, text);
  let key = '';
  link.addEventListener('click', (event) => {
    event.preventDefault();
    focus_item(job_cards.get(key).root);
  });
  return {
    root: make('li', {}, link),
    update(job) {
      const said = verdict_of(job);
      key = job_key(job);
      kind(dot, 'class', `dot ${said.level}`);
      say(name, job.name);
      say(text, said.text);
    },
  };
}

/* One job says its verdict on its card, which is in sight. */
function render_verdicts(jobs) {
  show(by('verdicts'), jobs.length > 1);
  reconcile(by('verdicts'), verdict_rows, jobs.length > 1 ? jobs : [], job_key, create_verdict);
}

/* What a trainer writes to be served by this daemon. */
function loader_example(ready) {
  const given = store.now.daemon === 'given' ? `export DATALOADERD_SOCKET=${plain(store.now.socket)}\n` : '';
  return `${given}loader = dlclient.Loader("${ready ? plain(ready.name) : '/data/photos'}", batch_size=64)`;
}

function render_no_job(jobs, filter) {
  const box = by('no_job'), ready = store.datasets.find((dataset) => dataset.state === 'ready');
  show(box, jobs.length === 0);
  if (jobs.length > 0) return;
  const sentence = store.now.jobs.length ? 'No job contains this text.'
    : !store.now.status ? 'Not known yet.'
    : 'No job is attached. A trainer appears here as soon as it has opened a loader:';
  const example = !store.now.jobs.length && store.now.status ? loader_example(ready) : '';
  const key = sentence + example;
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.replaceChildren(make('p', {}, sentence), ...(example ? [make('pre', {}, make('code', {}, example))] : []));
}

function render_foot() {
  const {daemon, socket, user, version} = store.now;
  say(by('foot'), `dlctl web ${version}, run by ${user}, asks the ${daemon === 'private' ? 'private daemon' : 'daemon'} at ${socket || 'its usual places'} once a second. The same as JSON: /status.json`);
}

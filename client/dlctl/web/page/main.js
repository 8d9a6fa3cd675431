/* Asks once a second while somebody sees the page, and renders what has come. */
const job_cards = new Map();

const view = {
  get span_ms() { return look.minutes * 60 * 1000; },
  now_ms() { // while the daemon is away, time goes on
    return store.now.away || !store.last_second ? store.now.now_unix_ms : store.last_second.unix_ms;
  },
  span_text() { return `the last ${look.minutes} minutes`; },
};

function render() {
  render_away();
  if (!store.now) return;
  const filter = by('search').value.trim().toLowerCase();
  const jobs = store.now.jobs.filter((job) => contains(filter, job.name, job.dataset, user_of(job), job.pipeline));
  say(by('host'), `on ${store.now.host}`);
  render_facts(store.now.status);
  render_verdicts(jobs);
  reconcile(by('job_list'), job_cards, jobs, job_key, create_job);
  say(by('n_jobs'), jobs.length ? count(jobs.length) : '');
  render_no_job(jobs, filter);
  render_datasets(filter);
  render_errors(filter);
  render_counters(store.now.status);
  render_foot();
}

let timer = 0, asking = false;

async function tick() {
  clearTimeout(timer);
  if (asking) return;
  asking = true;
  await ask();
  asking = false;
  render();
  if (!document.hidden) timer = setTimeout(tick, 1000);
}

document.addEventListener('visibilitychange', () => { if (!document.hidden) tick(); });
addEventListener('resize', () => { if (store.now) render(); });
apply_look();
tick();

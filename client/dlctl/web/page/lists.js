/* Datasets and damaged samples: tables. */
const ERRORS_SHOWN = 20; // a page

/* "left 3 min, 120 MiB/s" */
function staging_text(staging) {
  const parts = [staging.phase || 'staging', `${bytes(staging.done_bytes)} of ${bytes(staging.total_bytes)}`];
  if (staging.at_work && staging.per_second_bytes > 0) parts.push(`${bytes(staging.per_second_bytes)}/s`);
  if (staging.at_work && staging.left_seconds !== undefined) parts.push(`${duration(staging.left_seconds)} left`);
  if (staging.error) parts.push(staging.error);
  return parts.join(', ');
}

/* "indexing: 34 %, 12,000 of 35,000 files, 1,200/s, 19 s left" */
function progress_text(progress) {
  const amount = progress.unit === 'B' ? bytes : count, unit = progress.unit === 'B' ? '' : ` ${progress.unit}`;
  const parts = [progress.total > 0 ? `${amount(progress.done)} of ${amount(progress.total)}${unit}` : `${amount(progress.done)}${unit}`];
  if (progress.total > 0) parts.unshift(share(progress.done / progress.total));
  if (progress.per_second > 0) parts.push(`${amount(progress.per_second)}/s`);
  if (progress.left_seconds !== undefined) parts.push(`${duration(progress.left_seconds)} left`);
  return `${progress.phase}: ${parts.join(', ')}`;
}

/* How far work on a dataset is, 0..1, if that is known. */
function progress_of(dataset) {
  const progress = dataset.progress && dataset.progress[0];
  if (progress && progress.total > 0) return progress.done / progress.total;
  const staging = dataset.staging && dataset.staging[0];
  const percent = dataset.state === 'indexing' && /(\d+(?:\.\d+)?) ?%/.exec(dataset.text || '');
  if (staging && dataset.state !== 'ready') return staging.percent / 100;
  return percent ? percent[1] / 100 : null;
}

function create_dataset() {
  const name = make('span'), path = make('small'), state = make('span'), text = make('small'), bar = make('i');
  const progress = make('div', {class: 'progress', role: 'progressbar', 'aria-valuemin': '0', 'aria-valuemax': '100', 'aria-label': 'progress'}, bar);
  const format = make('td', {class: 'format'}), samples = make('td', {class: 'number', 'data-label': 'samples'}), size = make('td', {class: 'number'});
  const damaged = make('td', {class: 'number', 'data-label': 'damaged'});
  const root = make('tr', {}, make('td', {class: 'name'}, name, path), make('td', {class: 'state'}, state, progress, text), format, samples,
                    size, damaged);
  return {
    root,
    update(dataset) {
      const done = progress_of(dataset), staging = dataset.staging && dataset.staging[0];
      const is_staging = staging && dataset.state !== 'ready';
      say(name, dataset.name);
      say(path, dataset.path);
      say(state, dataset.state);
      kind(state, 'class', dataset.state === 'failed' ? 'bad' : '');
      show(progress, done !== null);
      if (done !== null) {
        width(bar, done);
        kind(progress, 'aria-valuenow', String(Math.round(100 * done)));
      }
      say(text, is_staging ? staging_text(staging) : dataset.progress && dataset.progress.length ? progress_text(dataset.progress[0]) : dataset.text || '');
      say(format, dataset.format || '');
      say(samples, dataset.n_samples > 0 ? count(dataset.n_samples) : '');
      say(size, dataset.n_bytes > 0 ? bytes(dataset.n_bytes) : '');
      say(damaged, dataset.n_errors > 0 ? count(dataset.n_errors) : '0');
    },
  };
}

function create_error() {
  const cells = [make('td', {class: 'name'}), make('td', {class: 'number', 'data-label': 'sample'}), make('td', {class: 'path mono'}),
                 make('td', {class: 'what'}), make('td', {class: 'number', 'data-label': 'met'}), make('td', {class: 'number', 'data-label': 'last'})];
  return {
    root: make('tr', {}, ...cells),
    update(error) {
      const ago = store.now.now_unix_ms / 1000 - error.last_unix;
      const texts = [error.dataset, count(error.index), error.path, error.field ? `${error.field}: ${error.error}` : error.error,
                     `${count(error.n_met)} ×`, error.last_unix > 0 ? `${duration(ago)} ago` : '–'];
      texts.forEach((text, i) => say(cells[i], text));
    },
  };
}

function create_counter() {
  const cells = [make('td', {class: 'name'}), make('td', {class: 'number'}), make('td', {class: 'what'})];
  return {
    root: make('tr', {}, ...cells),
    update({name, value, unit, text}) {
      [number_title(name), number_text(name, Number(value), unit), text].forEach((cell, i) => say(cells[i], cell));
    },
  };
}

const lists = {datasets: new Map(), errors: new Map(), counters: new Map(), page: 0};

function contains(filter, ...texts) {
  return !filter || texts.some((text) => String(text || '').toLowerCase().includes(filter));
}

function render_datasets(filter) {
  const found = store.datasets.filter((dataset) => contains(filter, dataset.name, dataset.path, dataset.format, dataset.state));
  reconcile(by('dataset_table').tBodies[0], lists.datasets, found, (dataset) => dataset.name, create_dataset);
  show(by('dataset_table'), found.length > 0);
  show(by('no_dataset'), found.length === 0);
  say(by('no_dataset'), store.datasets.length ? 'No dataset contains this text.'
      : !store.now.status ? 'Not known yet.'
      : store.now.daemon === 'private' ? 'None is open. A path that a loader names appears here.'
      : 'The daemon has no dataset: its configuration names none (dataset "photos" { path = "/data/photos" }).');
  const total = store.now.status ? store.now.status.n_datasets : 0;
  say(by('n_datasets'), total > store.datasets.length ? `the first ${count(store.datasets.length)} of ${count(total)}` : found.length ? count(found.length) : '');
}

function render_errors(filter) {
  const found = store.errors.filter((error) => contains(filter, error.dataset, error.path, error.error, error.field));
  const n_pages = Math.max(1, Math.ceil(found.length / ERRORS_SHOWN));
  lists.page = Math.min(lists.page, n_pages - 1);
  const first = lists.page * ERRORS_SHOWN, page = found.slice(first, first + ERRORS_SHOWN);
  reconcile(by('error_table').tBodies[0], lists.errors, page, (error) => `${error.index} ${error.dataset}`, create_error);
  show(by('error_table'), found.length > 0);
  show(by('pager'), n_pages > 1);
  say(by('page_number'), `${count(first + 1)} to ${count(first + page.length)} of ${count(found.length)}`);
  by('previous').disabled = lists.page === 0;
  by('next').disabled = lists.page + 1 === n_pages;
  show(by('no_error'), found.length === 0);
  say(by('no_error'), store.errors.length ? 'No damaged sample contains this text.' : 'None has been met.');
  say(by('n_errors'), store.now.has_more_errors ? `the first ${count(store.errors.length)}; dlctl errors lists all` : found.length ? count(found.length) : '');
}

/* All that the daemon counts, whatever that is; what has never happened is left out. */
function render_counters(status) {
  const found = status ? status.counters.filter((counter) => counter.value !== '0') : [];
  show(by('counted'), found.length > 0);
  reconcile(by('counter_table').tBodies[0], lists.counters, found, (counter) => counter.name, create_counter);
}

function turn_page(step) {
  lists.page = Math.max(0, lists.page + step);
  render();
}

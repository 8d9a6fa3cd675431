/* A job's card: its verdict, its numbers, a row for each rank, and where the workers' time goes. */
const RANKS_SHOWN = 64; // then a button shows the others
const FEW_RANKS = 4;    // have tall timelines, below each other
const STAGE_COLOURS = 9;

/* "Not input-bound: ..." What dlctl diagnose says, of the last minute. */
function sentence(text) {
  return text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}` : '';
}

const LEVELS = {not: 'good', moderately: 'wait', highly: 'bad'};

function level_of({limit, input_bound}) {
  if (limit === 'nothing yet' || limit === 'order') return '';
  if (limit === 'ended' || limit === 'outage') return 'bad';
  if (limit === 'rank' && input_bound === 'not') return 'wait'; // it holds the others, if not because of its data
  return LEVELS[input_bound] || '';
}

function verdict_of(job) {
  const {verdict, advice, limit} = job.verdict;
  if (job.confirming) return {level: '', text: sentence(`confirming: ${job.confirming}`), advice: 'dlctl diagnose --confirm serves it batches again; its trainer goes on after that.'};
  if (job.progress && job.progress.length) return {level: '', text: sentence(`waiting: ${progress_text(job.progress[0])}`), advice: ''};
  return {level: level_of(job.verdict), text: sentence(verdict), advice: limit === 'nothing yet' ? '' : sentence(advice)};
}

/* What limits a job, in numbers. */
function rates_text({samples_per_second: taken, demand_samples_per_second: demand, workers_samples_per_second: workers,
                     storage_samples_per_second: storage, predicted_samples_per_second: predicted}) {
  const parts = [[demand, 'the trainer could take'], [workers, 'the workers could make'], [storage, 'storage could give'],
                 [predicted, 'after the advised change']].filter(([n]) => n > 0).map(([n, text]) => `${text} ${rate(n)}`);
  return [`${rate(taken || 0)} samples/s are taken`, ...parts].join('; ');
}

/* ---- ranks */

function by_rank(ranks) {
  return [...ranks].sort((a, b) => a.rank - b.rank);
}

function create_rank(rank) {
  const canvas = make('canvas', {role: 'img'});
  const leased = make('i', {class: 'leased'}), ready = make('i', {class: 'ready'});
  const slots = make('span', {}), waits = make('span', {class: 'number'}), speed = make('span', {class: 'number rate'});
  const root = make('div', {class: 'rank'},
                    make('span', {class: 'name'}, make('b', {}, 'rank '), String(rank.rank)), canvas,
                    make('span', {class: 'slots'}, make('span', {class: 'track'}, ready, leased), slots), waits, speed);
  root.querySelector('b').style.fontWeight = 'inherit';
  return {
    root,
    update({rank, points}) {
      const wait = mean(points, 'wait', 60), batches = mean(points, 'rate');
      width(ready, rank.n_ready / rank.n_slots);
      width(leased, rank.n_leased / rank.n_slots);
      say(slots, `${rank.n_ready}/${rank.n_slots}`);
      say(waits, wait === null ? '–' : share(wait));
      kind(waits, 'class', wait === null || wait < 0.05 ? 'number' : wait < 0.2 ? 'number warn' : 'number bad');
      say(speed, batches === null ? '–' : `${rate(batches)} /s`);
      kind(root, 'title', `rank ${rank.rank}: process ${rank.pid}, epoch ${rank.epoch}, step ${rank.step}, ` +
                          `ring ${bytes(rank.ring_bytes)} (${rank.memory})`);
      kind(canvas, 'aria-label', `rank ${rank.rank}: ${rank.n_ready} of ${rank.n_slots} batches ready` +
                                 (wait === null ? '' : `, waits ${share(wait)} of the time`));
      draw_timeline(canvas, points, view.now_ms(), view.span_ms);
    },
  };
}

function rank_head() {
  return make('div', {class: 'rank head', 'aria-hidden': 'true'}, make('span'), make('span', {class: 'span'}, make('span'), make('span', {}, 'now')),
              make('span', {}, 'ready'),
              make('span', {class: 'number'}, 'waits'), make('span', {class: 'number rate'}, 'batches'));
}

/* ---- stages */

const stage_colours = new Map(); // a stage keeps its colour on all cards

function stage_colour(name) {
  if (!stage_colours.has(name)) stage_colours.set(name, Math.min(stage_colours.size, STAGE_COLOURS - 1));
  return `s${stage_colours.get(name)}`;
}

function create_stages() {
  const stack = make('div', {class: 'stack', role: 'img'}), legend = make('ul', {class: 'legend'});
  const canvas = make('canvas', {'aria-hidden': 'true'}), busy = make('span', {class: 'busy'});
  const root = make('div', {class: 'stages', hidden: ''},
                    make('div', {class: 'title'}, 'Workers that were busy for this job, by stage; at the top, all of them'),
                    make('div', {class: 'rank'}, make('span'), canvas, busy),
                    make('div', {class: 'title'}, 'Where the workers’ time went in the last minute'), stack, legend);
  const parts = new Map(), names = new Map();
  return {
    root,
    update(points, n_workers) {
      const sums = stage_sums(points);
      const cpus = mean(points, 'cpus');
      say(busy, cpus === null ? '' : `${rate(Math.min(cpus, n_workers))} of ${n_workers}`);
      show(root, sums.length > 0);
      reconcile(stack, parts, sums, (sum) => sum.name, (sum) => {
        const part = make('i');
        part.style.background = `var(--${stage_colour(sum.name)})`;
        return {root: part, update: (now) => { width(part, now.share); kind(part, 'title', `${now.name} ${share(now.share)}`); }};
      });
      reconcile(legend, names, sums, (sum) => sum.name, (sum) => {
        const colour = make('i'), text = make('span');
        colour.style.background = `var(--${stage_colour(sum.name)})`;
        return {root: make('li', {}, colour, text), update: (now) => say(text, `${now.name} ${share(now.share)}`)};
      });
      kind(stack, 'aria-label', sums.map((sum) => `${sum.name} ${share(sum.share)}`).join(', '));
      draw_stages(canvas, points, sums.map(({name}) => ({name, colour: style[stage_colour(name)]})), n_workers, view.now_ms(), view.span_ms);
    },
  };
}

/* ---- numbers and details */

const JOB_NUMBERS = [
  ['Samples', (job, series) => ({value: series.samples, unit: '/s'})],
  ['Batches', (job, series) => ({value: series.rate, unit: '/s'})],
  ['Trainer waits', (job, series) => ({text: series.wait === null ? '–' : share(series.wait), unit: ''})],
  ['Batch ready', (job, series) => ({text: series.has_ready === null ? '–' : share(series.has_ready), unit: ''})],
  ['Workers', (job, series) => ({value: series.cpus && Math.min(series.cpus, store.now.status.n_workers), unit: 'busy'})],
  ['Epoch', (job) => ({text: job.ranks.length ? count(job.ranks[0].epoch) : '–', unit: job.ranks.length ? `step ${count(job.ranks[0].step)}` : ''})],
];

function create_numbers() {
  const root = make('dl', {class: 'numbers'});
  const cells = JOB_NUMBERS.map(([name]) => {
    const value = make('span'), unit = make('small');
    root.append(make('div', {}, make('dt', {}, name), make('dd', {}, value, ' ', unit)));
    return {value, unit};
  });
  return {
    root,
    update(job, means) {
      JOB_NUMBERS.forEach(([, describe], i) => {
        const {value, text, unit} = describe(job, means);
        say(cells[i].value, text !== undefined ? text : value === null ? '–' : rate(value));
        say(cells[i].unit, unit);
      });
    },
  };
}

const JOB_DETAILS = [
  ['Rates', (job) => rates_text(job.verdict)],
  ['Pipeline', (job) => job.pipeline], ['Order', (job) => `${job.sampler || job.order}${job.shuffle ? '' : ', not shuffled'}, seed ${job.seed}`],
  ['Parts of the ranks', (job) => `${job.partition}, ${job.dealing}${job.drop_last ? ', without the last incomplete batch' : ''}`],
  ['Damaged samples', (job) => `${count(job.n_errors)} met; policy ${job.on_error}` + (job.errors_allowed > 0 ? `, ${count(job.errors_allowed)} allowed` : '')],
  ['Counted', (job) => Object.entries(job.counts).filter(([name, value]) => name !== 'now_ns' && value > 0)
    .map(([name, value]) => `${number_title(name)} ${number_text(name, value)}`).join(', ') || '–'],
  ['Processes', (job) => by_rank(job.ranks).map((rank) => `${rank.rank}: ${rank.pid}`).join(', ')],
  ['Memory', (job) => `${bytes(job.ranks.reduce((sum, rank) => sum + rank.ring_bytes, 0))} in rings: ${[...new Set(job.ranks.map((rank) => rank.memory))].join('; ')}`],
];

function create_details() {
  const list = make('dl'), root = make('details', {}, make('summary', {}, 'Details'), list);
  const cells = JOB_DETAILS.map(([name]) => {
    const cell = make('dd', {class: name === 'Pipeline' ? 'mono' : ''});
    list.append(make('dt', {}, name), cell);
    return cell;
  });
  let now = null;
  const render_open = () => { if (root.open) JOB_DETAILS.forEach(([, describe], i) => say(cells[i], describe(now))); };
  root.addEventListener('toggle', render_open);
  return {root, update: (job) => { now = job; render_open(); }};
}

function means_of(job, series) {
  const of_ranks = (name, seconds) => {
    const values = job.ranks.map((rank) => mean(series.ranks.get(rank.rank) || [], name, seconds)).filter((x) => x !== null);
    return values.length ? values.reduce((a, b) => a + b) / values.length : null;
  };
  const batches = mean(series.points, 'rate'), samples = mean(series.points, 'samples');
  return {
    rate: batches,
    samples: samples === null && batches !== null ? batches * job.batch_size : samples,
    cpus: mean(series.points, 'cpus'), wait: of_ranks('wait', 60), has_ready: of_ranks('has_ready', 60),
  };
}

/* ---- the card */

const LEGEND = [['ready', 'ready batches, of the ring', 'line'], ['wait', 'trainer waits', ''], ['busy', 'trainer computes', '']];

function create_job(job) {
  const title = make('h3'), dataset = make('bdi'), terms = make('span'), name = make('bdi'), dot = make('span', {class: 'dot'}), verdict = make('span'), advice = make('p', {class: 'advice'});
  const numbers = create_numbers(), stages = create_stages(), details = create_details();
  const ranks = make('div', {class: 'ranks'}), more = make('button', {type: 'button', class: 'more', hidden: ''});
  const marks = LEGEND.map(([name, text, shape]) => {
    const mark = make('i', {class: shape});
    mark.style.background = `var(--${name})`;
    return make('li', {}, mark, text);
  });
  const legend = make('ul', {class: 'legend'}, ...marks);
  const root = make('article', {class: 'job item', tabindex: '-1'}, title, make('p', {class: 'verdict'}, dot, verdict), advice, numbers.root,
                    ranks, more, legend, stages.root, details.root);
  const head = rank_head(), caption = make('div', {class: 'caption', 'aria-hidden': 'true'}), rows = make('div'), kept = new Map();
  let all = false;

  rows.style.display = 'contents';
  ranks.append(caption, head, rows);
  say(name, job.name);
  title.append(name, ' ', make('span', {}, dataset, terms));
  more.addEventListener('click', () => { all = !all; render(); });
  return {
    root,
    update(now) {
      const series = series_of(job_key(now)), said = verdict_of(now), means = means_of(now, series);
      kind(root, 'aria-label', `job ${now.name}`);
      say(dataset, now.dataset);
      say(terms, ` · ${user_of(now)} · ${plural(now.ranks.length, 'rank')}` +
                 (now.world !== now.ranks.length ? ` of ${now.world}` : '') + ` · batch ${now.batch_size}`);
      kind(dot, 'class', `dot ${said.level}`);
      say(verdict, said.text);
      say(advice, said.advice);
      show(advice, said.advice !== '');
      numbers.update(now, means);
      const shown = by_rank(now.ranks).slice(0, all ? undefined : RANKS_SHOWN);
      kind(ranks, 'class', now.ranks.length > FEW_RANKS ? 'ranks many' : 'ranks');
      const is_many = now.ranks.length > FEW_RANKS;
      say(head.querySelector('.span').firstChild, `${look.minutes} minutes ago`);
      say(caption, `For each rank: ${view.span_text()}, batches that are ready, how much its trainer waits, batches/s`);
      show(head, now.ranks.length > 0 && !is_many);
      show(caption, is_many);
      reconcile(rows, kept, shown.map((rank) => ({rank, points: series.ranks.get(rank.rank) || []})), (row) => row.rank.rank,
                (row) => create_rank(row.rank));
      show(more, now.ranks.length > RANKS_SHOWN);
      say(more, all ? `Show ${RANKS_SHOWN} ranks` : `Show all ${now.ranks.length} ranks`);
      show(legend, now.ranks.length > 0);
      marks.slice(1).forEach((mark) => show(mark, means.wait !== null));
      stages.update(series.points, store.now.status.n_workers);
      details.update(now);
    },
    toggle() { details.root.open = !details.root.open; },
  };
}

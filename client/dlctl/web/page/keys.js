/* Keys, the filter, and how it looks. */
const THEMES = ['system', 'light', 'dark'];
const remembered = { // a browser may forbid to remember
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(name, value); } catch { /* until it is closed */ } },
};
const dark = matchMedia('(prefers-color-scheme: dark)');
const look = {
  theme: THEMES.includes(remembered.get('theme')) ? remembered.get('theme') : 'system',
  minutes: remembered.get('minutes') === '2' ? 2 : 10,
};

function apply_look() {
  const name = look.theme === 'system' ? (dark.matches ? 'dark' : 'light') : look.theme;
  document.documentElement.dataset.theme = name;
  say(by('theme'), {system: 'As system', light: 'Light', dark: 'Dark'}[look.theme]);
  say(by('range'), `${look.minutes} minutes`);
  read_style();
}

function next_theme() {
  look.theme = THEMES[(THEMES.indexOf(look.theme) + 1) % THEMES.length];
  remembered.set('theme', look.theme);
  apply_look();
  render();
}

function next_range() {
  look.minutes = look.minutes === 10 ? 2 : 10;
  remembered.set('minutes', String(look.minutes));
  apply_look();
  render();
}

function items() {
  return [...document.querySelectorAll('.item')].filter((item) => item.offsetParent !== null);
}

function focus_item(item) {
  item.focus({preventScroll: true});
  item.scrollIntoView({block: 'nearest'});
}

/* The next one after what has the focus, or after what is at the top of the window. */
function step_item(step) {
  const all = items(), at = all.findIndex((item) => item.contains(document.activeElement));
  if (all.length) focus_item(all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))]);
}

function toggle_details() {
  for (const card of job_cards.values())
    if (card.root.contains(document.activeElement)) card.toggle();
  render();
}

const KEYS = {
  j: () => step_item(1), k: () => step_item(-1), o: toggle_details, t: next_theme, r: next_range, n: () => turn_page(1),
  p: () => turn_page(-1), g: () => { scrollTo(0, 0); by('jobs').focus({preventScroll: true}); },
  '/': () => by('search').focus(), '?': () => by('help').showModal(),
};

document.addEventListener('keydown', (event) => {
  const search = by('search');
  if (event.key === 'Escape' && event.target === search) {
    search.value = '';
    search.blur();
    render();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target === search || by('help').open || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
by('search').addEventListener('input', () => { lists.page = 0; render(); });
by('theme').addEventListener('click', next_theme);
by('range').addEventListener('click', next_range);
by('keys').addEventListener('click', () => by('help').showModal());
by('previous').addEventListener('click', () => turn_page(-1));
by('next').addEventListener('click', () => turn_page(1));
dark.addEventListener('change', () => { apply_look(); render(); });

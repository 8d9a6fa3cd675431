/* Numbers as people read them, and elements. Nothing here makes HTML of text: names of others stay text. */
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

function bytes(n) {
  let unit = 0;
  while (n >= 1024 && unit + 1 < UNITS.length) {
    n /= 1024;
    unit++;
  }
  return `${unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${UNITS[unit]}`;
}

function count(n) {
  return Math.round(n).toLocaleString('en-US');
}

/* A rate has three digits: 0.42, 7.31, 46.2, 3,812. */
function rate(n) {
  return n === 0 ? '0' : n < 9.995 ? n.toFixed(2) : n < 99.95 ? n.toFixed(1) : count(n);
}

function share(x) {
  const percent = 100 * x;
  if (percent > 0 && percent < 0.05) return '< 0.1 %';
  return `${percent > 0 && percent < 9.95 ? percent.toFixed(1) : Math.round(percent)} %`;
}

function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, '0')} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor(s / 60) % 60).padStart(2, '0')} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

/* A number that the daemon names itself: "n_scratch_waits" is "scratch waits". */
function number_title(name) {
  return name.replace(/^n_/, '').replace(/_ns$/, '').replaceAll('_', ' ');
}

function number_text(name, value, unit) {
  return unit === 'ns' || name.endsWith('_ns') ? `${rate(value / 1e9)} s` : unit === 'bytes' || name.includes('bytes') ? bytes(value) : count(value);
}

function plural(n, one, many) {
  return `${count(n)} ${n === 1 ? one : many || `${one}s`}`;
}

/* Characters that are not seen, or that turn what follows around, are written out: a name must not look like another one. Joiners and
   selectors of variants stay: scripts and pictures are written with them. */
const UNSEEN = /(?![\u200c\u200d\ufe00-\ufe0f\u180b-\u180d\u180f\u{e0100}-\u{e01ef}])[\p{Cc}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu;

function plain(text) {
  return text.replace(UNSEEN, (c) => {
    const point = c.codePointAt(0).toString(16);
    return c === '\n' ? '\\n' : point.length > 4 ? `\\u{${point}}` : `\\u${point.padStart(4, '0')}`;
  });
}

/* Elements: make('p', {class: 'empty'}, 'text', child). Attributes are set as such, and no text is read as HTML. */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function by(id) {
  return document.getElementById(id);
}

/* Touches the document only if something changes. */
function say(element, text) {
  text = plain(text);
  if (element.textContent !== text) element.textContent = text;
}

function show(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
}

function width(element, x) {
  const text = `${(100 * Math.min(1, Math.max(0, x))).toFixed(2)}%`;
  if (element.style.width !== text) element.style.width = text;
}

function kind(element, name, value) {
  value = plain(value);
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/* Makes the children of `parent` those of `rows`, in their sequence, keeping the elements whose keys are there already: what
 * a reader has focused or unfolded stays so. `create` makes one ({root, update}). */
function reconcile(parent, kept, rows, key_of, create) {
  const seen = new Set();
  rows.forEach((row, i) => {
    const key = key_of(row);
    seen.add(key);
    let one = kept.get(key);
    if (!one) {
      one = create(row);
      kept.set(key, one);
    }
    if (parent.children[i] !== one.root) parent.insertBefore(one.root, parent.children[i] || null);
    one.update(row);
  });
  for (const [key, one] of kept)
    if (!seen.has(key)) {
      one.root.remove();
      kept.delete(key);
    }
}

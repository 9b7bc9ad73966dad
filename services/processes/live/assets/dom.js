// Updates of the page. Only changed parts are touched, so that focus, selection and scrolling stay.
export const find = (id) => document.getElementById(id);

export function element(name, style, text) {
  const made = document.createElement(name);
  if (style) made.className = style;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Texts from outside are inserted as text, never as markup.
export function say(place, text) {
  if (place.drawn === text) return;
  place.drawn = text;
  place.textContent = text;
}

export function style(place, name) { if (place.className !== name) place.className = name; }
export function show(place, wanted) { if (place.hidden === wanted) place.hidden = !wanted; }
export function tell(place, name, value) { if (place.getAttribute(name) !== value) place.setAttribute(name, value); }

// The children of a place, one for each key, in this order. `make` makes one, `change` updates it.
export function keyed(place, items, make, change) {
  const before = (place.children_by_key ??= new Map());
  const keys = new Set(items.map(([key]) => key));
  for (const [key, child] of before) if (!keys.has(key)) { child.remove(); before.delete(key); }
  let at = place.firstElementChild;
  for (const [key, item] of items) {
    let child = before.get(key);
    if (!child) before.set(key, child = make(item, key));
    if (child === at) at = at.nextElementSibling;
    else place.insertBefore(child, at);
    change(child, item, key);
  }
}

export const address = (run, more = {}) => `?${new URLSearchParams(run ? {run, ...more} : more)}`;

export function link(place, href, text) {
  tell(place, "href", href);
  say(place, text);
}

// The names of a followed cluster for numbers of jobs and users. A number without a name is shown itself.
const words = {run: undefined, ids: new Map(), users: new Map()};

export function learn(run, data) {
  if (run !== words.run) Object.assign(words, {run, ids: new Map(), users: new Map()});
  for (const kind of ["ids", "users"]) for (const [number, word] of data[kind] ?? []) words[kind].set(Number(number), word);
}

export const jobId = (number) => words.ids.get(number) ?? String(number);
export const userName = (number) => words.users.get(number) ?? String(number);

export function job(run, id) {
  const made = element("a");
  link(made, address(run, {job: id}), `job ${id}`);
  return made;
}

// A sentence in which every named job links to its page.
export function sentence(place, text, run) {
  if (place.drawn === text && place.run === run) return;
  place.drawn = text;
  place.run = run;
  const parts = text.split(/\bjob (\d+(?:_\d+)?)\b/);
  place.replaceChildren(...parts.map((part, at) => (at % 2 ? job(run, part) : part)));
}

// Changes of the page: only what is other than before is touched, so that focus, selection and scrolling stay.
export const find = (id) => document.getElementById(id);

export function element(name, style, text) {
  const made = document.createElement(name);
  if (style) made.className = style;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Whatever comes from outside is put in as text, never as markup.
export function say(place, text) {
  if (place.said === text) return;
  place.said = text;
  place.textContent = text;
}

export function style(place, name) { if (place.className !== name) place.className = name; }
export function show(place, wanted) { if (place.hidden === wanted) place.hidden = !wanted; }
export function tell(place, name, value) { if (place.getAttribute(name) !== value) place.setAttribute(name, value); }

// The children of a place, one for each key, in this order; `make` makes one, `change` brings it up to date.
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

export function job(run, number) {
  const made = element("a");
  link(made, address(run, {job: number}), `job ${number}`);
  return made;
}

// A sentence in which every job that is named leads to its page.
export function sentence(place, text, run) {
  if (place.said === text && place.run === run) return;
  place.said = text;
  place.run = run;
  const parts = text.split(/\bjob (\d+)\b/);
  place.replaceChildren(...parts.map((part, at) => (at % 2 ? job(run, part) : part)));
}

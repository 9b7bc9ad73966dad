// The cluster beside its shadows: other policies on the same jobs.
import {address, element, find, keyed, link, say, show, tell} from "./dom.js";
import {Clock, count, duration, percent} from "./format.js";
import {fill, table} from "./grid.js";

const signed = (value, digits) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(digits)}`;

// A difference and its 95 % confidence interval, times `unit`.
function between(data, unit, digits, name) {
  if (data === null) return "–";
  const bounds = data.low === null || data.high === null ? "" : `\n(${signed(unit * data.low, digits)} to ${signed(unit * data.high, digits)})`;
  return `${signed(unit * data.mean, digits)}${name}${bounds}`;
}

const decimals = (value) => (value === null ? "–" : value.toFixed(2));

function figures(data) {
  const all = data.all, pair = (both, shown) => [shown(both.real), shown(both.shadow)];
  if (all === null) return [];
  return [
    ["mean wait", ...pair(all.wait, duration), between(all.wait_change, 100, 0, " %")],
    ["median wait", ...pair(all.median_wait, duration), ""],
    ["longest wait", ...pair(all.longest_wait, duration), ""],
    ["bounded slowdown", ...pair(all.slowdown, decimals), between(all.slowdown_difference, 1, 2, "")],
    ["busy", ...pair(data.utilization, percent), between(data.utilization_difference, 100, 1, " points")],
  ];
}

const of_class = (entry) => [entry.shape, count(entry.jobs), duration(entry.wait.real), duration(entry.wait.shadow),
  between(entry.wait_change, 100, 0, " %"), percent(entry.sooner.share), percent(entry.later.share), duration(entry.longest_wait.shadow)];
const of_user = (entry, names) => [entry.others ? "others" : entry.user === null ? "unknown" : names[entry.user] ?? String(entry.user), count(entry.jobs), duration(entry.wait.real),
  duration(entry.wait.shadow), percent(entry.sooner), percent(entry.later), duration(entry.longest_wait.shadow)];

function folded(summary, ...inner) {
  const made = element("details");
  made.append(element("summary", "", summary), ...inner);
  return made;
}

const FIGURES = (name) => ["figure", "real", name, "difference"];
const CLASSES = (name) => ["class", "jobs", "real", name, "change", "sooner", "later", "longest"];
const USERS = (name) => ["user", "jobs", "real", name, "sooner", "later", "longest"];

function make({run, name}) {
  const made = element("section", "shadow"), title = element("h3"), more = element("span", "note");
  title.id = `shadow-${encodeURIComponent(run)}`;
  tell(made, "aria-labelledby", title.id);
  title.append(element("a"));
  made.append(title, element("p", "verdict"), element("p", "note"), table(FIGURES(name), `real and under ${name}`), element("ul", "note"),
    folded("Mean waits by class of job", table(CLASSES(name), `by class, under ${name}`, true), element("p", "under")),
    folded("Mean waits by user, those with the most work first", table(USERS(name), `by user, under ${name}`, true), more));
  return made;
}

// The age of the data: a shadow that lags is known only up to an earlier time than the cluster.
const ago = (entry, data, state) => (state.followed && !state.closed ? `, ${duration(Math.max(0, Date.now() / 1000 - entry.unix_start - data.horizon))} ago` : "");

function change(made, entry, state) {
  const [title, verdict, basis, all, notes, classes, users] = made.children, data = entry.compared, name = entry.name;
  link(title.firstChild, address(entry.run), name);
  say(verdict, entry.verdict ?? "No day is compared yet: first, all jobs of the day must end on both machines.");
  const clock = new Clock(entry.unix_start, data.horizon ?? 0);
  const before = data.until === null ? "" : ` before ${clock.day(data.until)}`;
  say(basis, data.all === null ? `Beside ${entry.real}.` : `Beside ${entry.real}: ${count(data.all.jobs)} job${data.all.jobs === 1 ? "" : "s"} of ${count(data.days)} whole day${data.days === 1 ? "" : "s"}${before}; known up to ${clock.full(data.horizon)}${ago(entry, data, state)}`);
  fill(all, FIGURES(name), figures(data));
  show(all, data.all !== null);
  keyed(notes, entry.notes.map((note) => [note, note]), () => element("li"), say);
  show(classes, data.classes.length > 0);
  fill(classes.children[1], CLASSES(name), data.classes.map(of_class));
  say(classes.lastChild, entry.classes_mean);
  show(users, data.users.length > 0);
  fill(users.children[1], USERS(name), data.users.map((user) => of_user(user, entry.names)));
  say(users.lastChild, entry.more_users ? `and ${count(entry.more_users)} more: shadowtime twin CLUSTER --json` : "");
}

// `data` is the newest answer. `problem` is the reason if there is no answer now.
export function drawTwin(data, problem, state) {
  link(find("twin-back"), address(state.run), `${state.cluster} under ${state.name}`);
  say(find("twin-title"), `${state.cluster} under other policies`);
  say(find("twin-problem"), problem ? `${problem}${data ? " The figures are from an earlier answer." : ""}` : data ? "" : "Asking …");
  keyed(find("twins"), (data?.shadows ?? []).map((entry) => [entry.run, {...entry, classes_mean: data.classes_mean, names: data.names}]), make, (made, entry) => change(made, entry, state));
}

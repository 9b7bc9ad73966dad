// The cluster beside its shadows: other policies on the same jobs.
import {address, element, find, keyed, link, say, show, tell} from "./dom.js";
import {Clock, count, duration, percent} from "./format.js";
import {fill, table} from "./grid.js";

const signed = (value, digits) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(digits)}`;

// A difference and the bounds between which it lies with 95 %, times `unit`.
function between(told, unit, digits, name) {
  if (told === null) return "–";
  const bounds = told.low === null || told.high === null ? "" : `\n(${signed(unit * told.low, digits)} to ${signed(unit * told.high, digits)})`;
  return `${signed(unit * told.mean, digits)}${name}${bounds}`;
}

const decimals = (value) => (value === null ? "–" : value.toFixed(2));

function figures(told) {
  const all = told.all, pair = (both, shown) => [shown(both.real), shown(both.shadow)];
  if (all === null) return [];
  return [
    ["mean wait", ...pair(all.wait, duration), between(all.wait_change, 100, 0, " %")],
    ["median wait", ...pair(all.median_wait, duration), ""],
    ["longest wait", ...pair(all.longest_wait, duration), ""],
    ["bounded slowdown", ...pair(all.slowdown, decimals), between(all.slowdown_difference, 1, 2, "")],
    ["busy", ...pair(told.utilization, percent), between(told.utilization_difference, 100, 1, " points")],
  ];
}

const of_class = (each) => [each.shape, count(each.jobs), duration(each.wait.real), duration(each.wait.shadow),
  between(each.wait_change, 100, 0, " %"), percent(each.sooner.share), percent(each.later.share), duration(each.longest_wait.shadow)];
const of_user = (each) => [each.others ? "others" : each.user === null ? "unknown" : String(each.user), count(each.jobs), duration(each.wait.real),
  duration(each.wait.shadow), percent(each.sooner), percent(each.later), duration(each.longest_wait.shadow)];

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

// How long ago that was: a shadow that lags is known only up to an earlier time than the cluster.
const ago = (each, told, state) => (state.followed && !state.closed ? `, ${duration(Math.max(0, Date.now() / 1000 - each.unix_start - told.horizon))} ago` : "");

function change(made, each, state) {
  const [title, verdict, basis, all, notes, classes, users] = made.children, told = each.compared, name = each.name;
  link(title.firstChild, address(each.run), name);
  say(verdict, each.verdict ?? "No day is over yet: days are compared once all their jobs have ended in both.");
  const clock = new Clock(each.unix_start, told.horizon ?? 0);
  const before = told.until === null ? "" : ` before ${clock.day(told.until)}`;
  say(basis, told.all === null ? `Beside ${each.real}.` : `Beside ${each.real}: ${count(told.all.jobs)} jobs of ${count(told.days)} whole days${before}; known up to ${clock.full(told.horizon)}${ago(each, told, state)}`);
  fill(all, FIGURES(name), figures(told));
  show(all, told.all !== null);
  keyed(notes, each.notes.map((note) => [note, note]), () => element("li"), say);
  show(classes, told.classes.length > 0);
  fill(classes.children[1], CLASSES(name), told.classes.map(of_class));
  say(classes.lastChild, each.classes_mean);
  show(users, told.users.length > 0);
  fill(users.children[1], USERS(name), told.users.map(of_user));
  say(users.lastChild, each.more_users ? `and ${count(each.more_users)} more: shadowtime twin CLUSTER --json` : "");
}

// `told` is the newest answer there was, `problem` why there is none now.
export function drawTwin(told, problem, state) {
  link(find("twin-back"), address(state.run), `${state.cluster} under ${state.name}`);
  say(find("twin-title"), `${state.cluster} under other policies`);
  say(find("twin-problem"), problem ? `${problem}${told ? " The figures are those of before." : ""}` : told ? "" : "Asking …");
  keyed(find("twins"), (told?.shadows ?? []).map((each) => [each.run, {...each, classes_mean: told.classes_mean}]), make, (made, each) => change(made, each, state));
}

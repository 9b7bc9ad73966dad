// The page that an address shows, and its updates: /?run=R a run, &job=N one job, &find=N the jobs of a user, &twin=yes the cluster
// under other policies, &advice=yes advice.
import {ASKED, drawAdvice, fillForm, readForm} from "./advice.js";
import {address, element, find, keyed, learn, link, say, show, style, tell} from "./dom.js";
import {Clock, count, duration, whole} from "./format.js";
import {drawFound, drawJob} from "./job.js";
import {ask, question, Stream} from "./stream.js";
import {drawStrip, whenChosen} from "./strip.js";
import {drawBounds, drawDecisions, drawRanges, drawRunning, drawSizes, drawWaiting} from "./tables.js";
import {drawTwin} from "./twin.js";

const REST_MS = 1000;  // between two queries of data that /events lacks
const FRAME_MS = 100;  // between two drawings: nobody reads figures that change more often
const TWIN_MS = 15000;  // between two queries of shadows
const ROWS = 25;

let route = readRoute();
let from = 0;
let asked = {at: 0, for: "", answer: undefined, busy: false};
let twin = {at: -TWIN_MS, of: "", data: null, problem: null};
let advice = {data: null, problem: null, asked: {}, busy: false, drawn: false};
let due = false;
let online = false;
let drawn = false;
let last = -FRAME_MS;

function readRoute() {
  const query = new URLSearchParams(location.search);
  const word = (name) => query.get(name)?.trim() || null;
  const advice = query.has("advice") ? Object.fromEntries([...query].filter(([name]) => ASKED.includes(name))) : null;
  return {run: query.get("run") ?? "", job: word("job"), find: word("find"), twin: query.has("twin"), advice};
}

function go(href, {replace = false, focus = true} = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", href || location.pathname);
  arrive(focus);
}

function arrive(focus) {
  const before = route;
  route = readRoute();
  asked = {at: 0, for: "", answer: undefined, busy: false};
  if (before.run !== route.run) { from = 0; stream.open(route.run); }
  arriveAtAdvice();
  draw();
  if (!focus) return;
  scrollTo(0, 0);
  const title = document.querySelector("main section:not([hidden]) > h2, main article:not([hidden]) h2");
  title?.focus({preventScroll: true});
}

const stream = new Stream(() => {
  if (due) return;
  due = true;
  setTimeout(() => requestAnimationFrame(() => { due = false; last = performance.now(); draw(); }), last + FRAME_MS - performance.now());
}, (connected) => { online = connected; drawConnection(); });

// The page is grey, and says why, while Kafka does not answer, or the log of a followed cluster gets old.
const OLD_SECONDS = 120;
const AGE_MS = 5000;

function drawConnection() {
  const state = stream.state, followed = state?.followed && !state.closed;
  const age = followed ? Date.now() / 1000 - state.unix_start - state.time : 0;
  const silent = state?.silent ?? null, old = silent !== null || age > OLD_SECONDS;
  const why = silent ?? (state?.quarantined ? "the run has stopped" : null) ?? `the log is ${duration(age)} old: the follower is down, or behind`;
  say(find("connection"), !online ? "connection lost, trying again" : old ? why : "live");
  style(find("connection"), online && !old ? "live" : "lost");
  document.body.classList.toggle("old", old);
}
setInterval(drawConnection, AGE_MS);

// Data that only a query returns: a page of the queue, a job, the jobs of a user. The query is repeated as the run continues.
function also(path, parameters, use) {
  const key = JSON.stringify([path, parameters]);
  if (asked.for !== key) asked = {at: 0, for: key, answer: undefined, busy: false};
  if (asked.answer !== undefined) use(asked.answer);
  const mine = asked, state = stream.state;
  if (mine.busy || mine.seen === state.time + ":" + state.ended || performance.now() - mine.at < REST_MS) return;
  mine.busy = true;
  mine.at = performance.now();
  mine.seen = state.time + ":" + state.ended;
  ask(path, parameters).then((answer) => { mine.answer = answer; if (mine === asked) draw(); }, () => {}).finally(() => { mine.busy = false; });
}

function arriveAtAdvice() {
  advice = {data: null, problem: null, asked: route.advice ?? {}, busy: false, sent: false, drawn: false};
  if (route.advice) fillForm(route.advice);
}

// The answer to the question in the address. It is asked once, and only if the form has values.
function followAdvice(state) {
  const mine = advice;
  if (!mine.sent && Object.keys(mine.asked).length) {
    mine.sent = mine.busy = true;
    question("ask/advice", {cluster: state.cluster, run: state.run, ...mine.asked}).then((answer) => {
      Object.assign(mine, answer, {busy: false, drawn: false});
      if (mine === advice) draw();
    });
  }
  drawAdvice(mine, state);
  mine.drawn = true;
}

function followTwin(state) {
  if (twin.of !== state.cluster) twin = {at: -TWIN_MS, of: state.cluster, data: null, problem: null};
  const mine = twin;
  if (!document.hidden && performance.now() - mine.at >= TWIN_MS) {
    mine.at = performance.now();
    question("ask/twin", {cluster: state.cluster}).then(({data, problem}) => {
      if (data) mine.data = data;
      mine.problem = problem?.error ?? null;
      if (mine === twin) draw();
    });
  }
  drawTwin(mine.data, mine.problem, state);
}

function draw() {
  const state = stream.state;
  if (state === null) return;
  drawRuns(state);
  const known = state.run !== undefined;
  const page = !known ? "nothing" : route.job !== null ? "job" : route.find !== null ? "finding" : route.twin ? "twin" : route.advice ? "asking" : "run";
  for (const name of ["nothing", "job", "finding", "run", "twin", "asking"]) show(find(name), name === page);
  show(find("search"), known);
  if (!known) return drawNothing();
  learn(state.run, state);
  const clock = new Clock(state.unix_start, state.time);
  const titles = {title: state.cluster, nothing: "", run: state.cluster, job: `Job ${route.job}, ${state.cluster}`, finding: `${route.find}, ${state.cluster}`,
    twin: `${state.cluster} under other policies`, asking: `What to ask for on ${state.cluster}`};
  if (document.title !== `${titles[page]} – Shadowtime`) document.title = `${titles[page]} – Shadowtime`;
  if (page === "run") drawRun(state, clock);
  if (!drawn) { drawn = true; performance.mark("first rows"); }
  if (page === "job") also("job", {run: state.run, job: route.job}, (answer) => drawJob(answer, route.job, state));
  if (page === "finding") also("find", {run: state.run, wanted: route.find}, (answer) => { if (answer) drawFound(answer, state); });
  if (page === "twin") followTwin(state);
  if (page === "asking") followAdvice(state);
}

function drawNothing() {
  show(find("no-run"), !route.run);
  show(find("no-such-run"), Boolean(route.run));
  document.title = "Shadowtime: live";
}

function drawRun(state, clock) {
  say(find("title"), state.cluster);
  say(find("policy"), state.name);
  find("policy").style.setProperty("--key", state.colour);
  say(find("clock"), clock.full(state.time));
  say(find("about"), about(state));
  show(find("about"), find("about").drawn !== "");
  figures(state, clock);
  for (const id of ["to-advice", "sizes-advice"]) tell(find(id), "href", address(state.run, {advice: "yes"}));
  link(find("to-twin"), address(state.run, {twin: "yes"}), `Under other policies (${count(state.shadows)})`);
  show(find("to-twin"), state.shadows > 0);
  drawStrip(state);
  const waiting = state.seen?.waiting ?? state.waiting;
  if (from && from >= waiting) from = Math.max(0, Math.ceil(waiting / ROWS) - 1) * ROWS;
  if (from === 0) drawWaiting(state, clock, 0, [...state.queue]);
  else also("queue", {run: state.run, from}, (answer) => { if (answer?.from === from) { learn(state.run, answer); drawWaiting(state, clock, from, answer.rows); } });
  drawRunning(state, clock);
  drawDecisions(state, clock);
  drawSizes(state, clock);
  drawBounds(state);
  drawRanges(state);
}

function about(state) {
  const sentences = [];
  if (!state.obeyed) sentences.push("Jobs start as recorded; the decisions of the policy are advice.");
  if (state.quarantined) sentences.push(`The run has stopped: ${state.quarantined}.`);
  else if (state.closed) sentences.push("The run is over.");
  if (state.untrusted.length) sentences.push(`Not to be trusted: ${state.untrusted.join("; ")}.`);
  if (state.behind > 1000) sentences.push(`Catching up: ${count(state.behind)} events to go.`);
  return sentences.join(" ");
}

function figures(state, clock) {
  const scores = state.scores, starting = state.processors - state.busy - state.free;
  const share = state.processors ? state.busy / state.processors : 0;
  const next = state.seen ? [] : [...state.running.values()].map((entry) => entry.end).filter((end) => end !== null && end >= state.time);
  const ensemble = state.bounds.find((entry) => entry.grouping === "ensemble"), inForce = (entry) => entry && entry.bound !== null && !entry.doubt?.withdrawn;
  const bound = inForce(ensemble) ? ensemble : state.bounds.find(inForce) ?? ensemble ?? state.bounds[0];
  const all = [
    ["processors busy", whole(share), `${count(state.busy)} of ${count(state.processors)}, ${starting > 0 ? `${count(starting)} for starts, ` : ""}${count(state.free)} free`],
    ["jobs waiting", count(state.waiting), state.waiting ? `longest for ${duration(state.longest_waiting)}` : ""],
    ["jobs running", count(state.running_count), next.length ? `next end expected ${clock.short(Math.min(...next))}` : ""],
    ["mean wait", duration(scores ? scores.mean_wait : state.mean_wait), `longest ${duration(scores ? scores.max_wait : state.longest_wait)}, ${count(state.ended)} jobs ended`],
  ];
  if (scores && scores.mean_bounded_slowdown !== null) all.push(["bounded slowdown", scores.mean_bounded_slowdown.toFixed(2), "mean"]);
  else if (bound && bound.bound !== null) all.push(["a job submitted now", ...comes(bound)]);
  keyed(find("figures"), all.map((entry) => [entry[0], entry]), ([name]) => {
    const box = element("div");
    box.append(element("dt", "", name), element("dd"), element("dd", "more"));
    return box;
  }, (box, [, value, more, name]) => {
    say(box.children[1], value);
    say(box.children[2], more);
    style(box.children[2], name ? `more ${name}` : "more");
  });
}

// The latest bound, and the number of waiting jobs that have waited longer than theirs: red from 5 % on.
function comes(bound) {
  const doubt = bound.doubt;
  const more = doubt && doubt.outwaited ? `${count(doubt.outwaited)} of ${count(doubt.waiting)} waiting are past their bound` : "";
  if (doubt?.withdrawn) return ["no bound", `withdrawn: ${more}`, "late"];
  const share = `with ${+(100 * bound.quantile).toFixed(2)} %${bound.grouping === "ensemble" ? "" : ` by ${bound.grouping}`}${bound.young ? ", young" : ""}`;
  return [`waits ≤ ${duration(bound.bound)}`, more ? `${share}; ${more}` : `${share}, the last known`, doubt?.high ? "late" : ""];
}

function drawRuns(state) {
  const select = find("runs"), wanted = route.run;
  if (document.activeElement === select) return;
  const items = state.runs.map((entry) => [entry.run, `${entry.cluster} under ${entry.name}${entry.closed ? " (over)" : ""}`]);
  const twice = new Set(items.map(([, name]) => name).filter((name, at, all) => all.indexOf(name) !== at));
  const options = [["", "newest run"], ...items.map(([run, name]) => [run, twice.has(name) ? `${name}: ${run}` : name])];
  if (wanted && !state.runs.some((entry) => entry.run === wanted)) options.push([wanted, `${wanted} (not known)`]);
  keyed(select, options.map(([run, name]) => [run, [run, name]]), ([run]) => { const made = element("option"); made.value = run; return made; },
    (option, [, name]) => say(option, name));
  if (select.value !== wanted) select.value = wanted;
  show(find("choose"), state.runs.length > 0);
}

find("runs").addEventListener("change", (event) => { event.target.blur(); go(event.target.value ? address(event.target.value) : "", {focus: false}); });
find("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const wanted = find("wanted").value.trim(), job = /^job\s+(\S+)$/i.exec(wanted), run = stream.state?.run;
  say(find("search-message"), "");
  if (!wanted || !run) return;
  if (job) return go(address(run, {job: job[1]}));
  ask("find", {run, wanted}).then((answer) => {
    go(address(run, answer?.job && !answer.count ? {job: answer.job[1]} : {find: wanted}));
  }, () => say(find("search-message"), "No answer, try again."));
});
find("advise").addEventListener("submit", (event) => {
  event.preventDefault();
  const asked = readForm();
  go(address(stream.state.run, {advice: "yes", ...(Object.keys(asked).length ? asked : {processors: ""})}), {focus: false});
});
find("before").addEventListener("click", () => { from = Math.max(0, from - ROWS); draw(); });
find("after").addEventListener("click", () => { from += ROWS; draw(); });
document.addEventListener("click", (event) => {
  const at = event.target.closest?.("a[href^='?']");
  if (!at || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(at.getAttribute("href"));
});
addEventListener("popstate", () => arrive(true));
arriveAtAdvice();
whenChosen((job) => go(address(stream.state.run, {job})));
setInterval(() => { if (stream.state?.run && (route.job !== null || route.find !== null || route.twin || from)) draw(); }, REST_MS);
stream.open(route.run);

// Draws what /events sends. Whatever comes from outside is put in as text, never as markup.
"use strict";

const AGAIN_MS = 2000;
const SILENT_MS = 30000;
const find = (id) => document.getElementById(id);
const chosen = () => new URLSearchParams(location.hash.slice(1)).get("run") ?? "";

let source = null;
let heard = 0;

function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds >= 3600) return `${(seconds / 3600).toFixed(1)} h`;
  return seconds >= 60 ? `${(seconds / 60).toFixed(1)} min` : `${Math.round(seconds)} s`;
}

const share = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);
const count = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));

function element(name, text, style) {
  const made = document.createElement(name);
  made.textContent = text;
  if (style) made.className = style;
  return made;
}

function rows(body, lines) {
  body.replaceChildren(...lines.map((cells) => {
    const row = document.createElement("tr");
    row.append(...cells.map(([text, style]) => element("td", text, style)));
    return row;
  }));
}

function figures(all) {
  find("figures").replaceChildren(...all.map(([name, value]) => {
    const box = document.createElement("div");
    box.append(element("dt", name), element("dd", value));
    return box;
  }));
}

function shape(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function chart(history) {
  const width = find("chart").clientWidth || 900;  // one unit is a pixel, on a phone too
  const [left, right, top, bottom] = [48, width - 40, 14, 190];
  find("chart").setAttribute("viewBox", `0 0 ${width} 220`);
  const first = history[0][0], last = history[history.length - 1][0];
  const most = Math.max(1, ...history.map((each) => Math.max(each[1], each[3])));
  const longest = Math.max(1, ...history.map((each) => each[2]));
  const x = (time) => left + (right - left) * (last > first ? (time - first) / (last - first) : 1);
  const y = (value, of) => bottom - (bottom - top) * value / of;
  const steps = (place, of) => history.map((each, at) =>
    at === 0 ? `M${x(each[0]).toFixed(1)} ${y(each[place], of).toFixed(1)}`
             : `H${x(each[0]).toFixed(1)}V${y(each[place], of).toFixed(1)}`).join("");
  const hours = ((last - first) / 3600).toFixed(1);
  find("chart").replaceChildren(
    shape("path", {d: steps(3, most), class: "line-all"}),
    shape("path", {d: steps(1, most), class: "line-busy"}),
    shape("path", {d: steps(2, longest), class: "line-queued"}),
    shape("text", {x: left - 6, y: top + 6, "text-anchor": "end"}, count(most)),
    shape("text", {x: left - 6, y: bottom, "text-anchor": "end"}, "0"),
    shape("text", {x: right + 6, y: top + 6}, count(longest)),
    shape("text", {x: left, y: 212}, `last ${hours} hours of the log`),
  );
}

function choices(runs) {
  const select = find("runs");
  const wanted = chosen();
  const known = runs.map((each) => each.run);
  const names = wanted && !known.includes(wanted) ? [wanted, ...known] : known;
  const told = JSON.stringify([names, runs.map((each) => each.closed)]);
  if (select.dataset.told === told || document.activeElement === select) return;
  select.dataset.told = told;
  const latest = element("option", "latest");
  latest.value = "";
  select.replaceChildren(latest, ...names.map((name) => {
    const run = runs.find((each) => each.run === name);
    const option = element("option", run ? `${run.cluster}: ${name}${run.closed ? " (over)" : ""}` : `${name} (not known)`);
    option.value = name;
    return option;
  }));
  select.value = wanted;
}

function draw(state) {
  choices(state.runs);
  const run = state.shown;
  find("run").hidden = run === null;
  find("nothing").hidden = run !== null;
  if (run === null) {
    find("nothing").textContent = chosen() ? "There is no such run, or not yet." : "No run yet: start a replay over Kafka, and it appears here.";
    return;
  }
  find("title").textContent = run.cluster;
  const over = run.quarantined ? ` It stopped: ${run.quarantined}.` : run.closed ? " The run is over." : "";
  const late = state.behind > 1000 ? ` Catching up: ${count(state.behind)} events to go.` : "";
  find("about").textContent = `${run.run}: ${run.mode} replay under ${run.policy}.${over}${late}`;
  const scores = run.scores;
  figures([
    ["time of the log", run.clock],
    ["processors busy", `${count(run.busy)} of ${count(run.processors)}`],
    ["jobs waiting", count(run.waiting)],
    ["jobs running", count(run.running)],
    ["jobs ended", count(run.ended)],
    ["mean wait", span(scores ? scores.mean_wait : run.mean_wait)],
    ["longest wait", span(scores ? scores.max_wait : run.longest_wait)],
    ...(scores && scores.mean_bounded_slowdown !== null ? [["bounded slowdown", scores.mean_bounded_slowdown.toFixed(2)]] : []),
  ]);
  chart(run.history);
  rows(find("decisions"), run.decisions.map((each) =>
    [[each.time, "time"], [each.job === null ? "–" : String(each.job), "number"], [each.what], [each.why]]));
  rows(find("queue"), run.queue.map((job) => [
    [String(job.job), "number"], [job.user === null ? "–" : String(job.user), "number"], [count(job.processors), "number"],
    [span(job.requested_time), "number"], [span(job.waited), "number"], [span(job.bound), "number"]]));
  const more = run.waiting - run.queue.length;
  find("more").textContent = run.waiting === 0 ? "No job waits." : more > 0 ? `and ${count(more)} more` : "";
  find("bounds-section").hidden = run.bounds.length === 0;
  rows(find("bounds"), run.bounds.map((each) => [
    [each.grouping], [each.bound === null ? `none: ${each.reason ?? "unknown"}` : span(each.bound)], [share(each.quantile), "number"],
    [each.covered === null ? "–" : `${share(each.covered)} of ${count(each.revealed)}`]]));
}

function say(text, style) {
  const place = find("connection");
  if (place.textContent !== text) place.textContent = text;
  place.className = style;
}

function connect() {
  if (source) source.close();
  const run = chosen();
  source = new EventSource(run ? `events?run=${encodeURIComponent(run)}` : "events");
  heard = Date.now();
  source.onopen = () => { heard = Date.now(); say("live", "live"); };
  source.onmessage = (event) => { heard = Date.now(); say("live", "live"); draw(JSON.parse(event.data)); };
  source.addEventListener("alive", () => { heard = Date.now(); say("live", "live"); });
  source.onerror = () => {
    say("connection lost, trying again", "lost");
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, AGAIN_MS);  // refused: the browser gave up
  };
}

find("runs").addEventListener("change", (event) => {
  history.replaceState(null, "", event.target.value ? `#${new URLSearchParams({run: event.target.value})}` : location.pathname);
  event.target.blur();
  connect();
});
addEventListener("hashchange", connect);
setInterval(() => { if (Date.now() - heard > SILENT_MS) { say("connection lost, trying again", "lost"); connect(); } }, AGAIN_MS);
connect();

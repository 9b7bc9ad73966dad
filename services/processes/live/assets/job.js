// One job: its state, its events, and each prediction beside its outcome.
import {address, element, find, keyed, link, say, sentence, show, style} from "./dom.js";
import {Clock, count, duration} from "./format.js";

const STATES = {
  waiting: "waits", running: "runs", suspended: "is suspended", ended: "has ended", cancelled: "was cancelled", held: "is held",
};

export function drawJob(data, number, state) {
  say(find("job-number"), `Job ${data?.id ?? number}`);
  link(find("back"), address(state.run), `${state.cluster} under ${state.name}`);
  show(find("job-known"), data !== null);
  show(find("job-unknown"), data === null);
  show(find("job-state"), data !== null);
  if (data === null) return;
  say(find("job-state"), STATES[data.state]);
  style(find("job-state"), `chip ${data.state}`);
  keyed(find("job-head"), data.head.map((entry, at) => [at, entry]), () => element("p"), (item, entry) => sentence(item, entry, state.run));
  show(find("job-why-known"), data.why.length > 0);
  keyed(find("job-why"), data.why.map((entry, at) => [at, entry]), () => element("li"), (item, entry) => sentence(item, entry, state.run));
  drawMarks(data.marks, new Clock(state.unix_start, state.time), data.state);
  keyed(find("job-story"), data.story.map((entry, at) => [at, entry]), () => {
    const made = element("li");
    made.append(element("time"), element("p"));
    return made;
  }, (item, [, when, what]) => {
    say(item.firstChild, when);
    sentence(item.lastChild, what, state.run);
  });
  keyed(find("job-predictions"), data.predictions.map((entry) => [entry[0], entry]), () => {
    const made = element("tr");
    made.setAttribute("role", "row");
    for (const label of ["", "predicted", "actual", "result"]) {
      const cell = element("td");
      cell.setAttribute("role", "cell");
      cell.dataset.label = label;
      made.append(cell);
    }
    return made;
  }, (line, entry) => entry.forEach((text, at) => {
    say(line.children[at], text);
    if (at === 3) style(line.children[at], text.startsWith("missed") || text.startsWith("too short") ? "late" : "");
  }));
  const user = find("job-user");
  show(user, data.user !== null);
  if (data.user !== null) link(user, address(state.run, {find: `user ${data.user}`}), `all jobs of user ${data.user}`);
}

function drawMarks(marks, clock, at) {
  const {submitted, started, ended, withdrawn, ran, expected_end: expected, limit, starts, now} = marks;
  const waits = started === null && withdrawn === null;
  const bars = [["waited", submitted, started ?? withdrawn ?? now, waits ? "has waited" : "waited"]];
  if (started !== null) bars.push(["ran", started, ended ?? now, ended === null ? "has run" : "ran", ran]);  // without suspensions
  if (at === "running" && expected !== null && expected > now) bars.push(["to-come", now, expected, "to its expected end"]);
  const ticks = [];
  if (ended === null && withdrawn === null) ticks.push(["now", now, "now"]);
  if (starts !== null && started === null) ticks.push(["by", starts, "expected to start"]);
  if (limit !== null) ticks.push(["limit", limit, ended === null ? "its limit" : "its limit was"]);
  const last = Math.max(submitted + 1, ...bars.map(([, , end]) => end), ...ticks.map(([, second]) => second));
  const place = (second) => `${(100 * (Math.max(submitted, second) - submitted) / (last - submitted)).toFixed(2)}%`;
  keyed(find("bars"), [...bars, ...ticks.map(([name, second]) => [name, second, null])].map((entry) => [entry[0], entry]),
    ([name, , end]) => element("span", `${end === null ? "tick" : "bar"} ${name}`), (bar, [, start, end]) => {
      bar.style.setProperty("--from", place(start));
      if (end !== null) bar.style.setProperty("--to", place(end));
    });
  const legend = bars.map(([name, start, end, what, seconds]) => [name, `${what} ${duration(seconds ?? end - start)}`, `${clock.short(start)} to ${clock.short(end)}`]);
  for (const [name, second, what] of ticks) legend.push([`tick ${name}`, what, clock.short(second)]);
  keyed(find("points"), legend.map((entry) => [entry[0], entry]), ([name]) => {
    const made = element("li");
    made.append(element("i", name), element("b"), element("span"));
    return made;
  }, (item, [, what, when]) => {
    say(item.children[1], what);
    say(item.children[2], when);
  });
}

const FOUND = ["job", "state", "processors", "submitted"];

export function drawFound(data, state) {
  const clock = new Clock(state.unix_start, state.time), whose = data.of === null ? data.name : `${data.of} ${data.name}`;
  link(find("found-back"), address(state.run), `${state.cluster} under ${state.name}`);
  say(find("found-title"), `${data.of === null ? "Search for" : "Jobs of"} ${whose}`);
  say(find("found-count"), data.of === null ? (data.job === null ? "No job, user, account or partition of this name is remembered." : "")
    : data.count === 0 ? `No job of ${whose} is remembered.`
    : data.count > data.jobs.length ? `The last ${data.jobs.length} of ${count(data.count)}.` : "");
  show(find("found-table"), data.jobs.length > 0);
  show(find("found-job"), data.job !== null);
  if (data.job !== null) sentence(find("found-job"), `There is a job ${data.job[1]}, which ${STATES[data.job[3]]}.`, state.run);
  show(find("found-also"), data.also.length > 0);
  keyed(find("found-also"), data.also.map((kind) => [kind, kind]), () => element("a"), (item, kind) => {
    link(item, address(state.run, {find: `${kind} ${data.name}`}), `Jobs of ${kind} ${data.name}`);
  });
  keyed(find("found"), data.jobs.map((entry) => [entry[0], entry]), () => {
    const made = element("tr");
    made.setAttribute("role", "row");
    for (const label of FOUND) {
      const cell = element("td", label === "processors" ? "number" : "");
      cell.setAttribute("role", "cell");
      cell.dataset.label = label;
      made.append(cell);
    }
    made.firstChild.append(element("a"));
    return made;
  }, (line, [job, id, processors, at, submitted]) => {
    link(line.firstChild.firstChild, address(state.run, {job}), id);
    say(line.children[1], at);
    say(line.children[2], count(processors));
    say(line.children[3], clock.short(submitted));
  });
}

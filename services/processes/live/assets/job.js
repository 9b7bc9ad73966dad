// One job: how it stands, what happened to it, and each prediction beside what came.
import {address, element, find, keyed, link, say, sentence, show, style} from "./dom.js";
import {Clock, count, duration} from "./format.js";

const STATES = {
  waiting: "waits", running: "runs", suspended: "is suspended", ended: "has ended", cancelled: "was cancelled", held: "is held",
};

export function drawJob(told, number, state) {
  say(find("job-number"), `Job ${told?.id ?? number}`);
  link(find("back"), address(state.run), `${state.cluster} under ${state.name}`);
  show(find("job-known"), told !== null);
  show(find("job-unknown"), told === null);
  show(find("job-state"), told !== null);
  if (told === null) return;
  say(find("job-state"), STATES[told.state]);
  style(find("job-state"), `chip ${told.state}`);
  keyed(find("job-head"), told.head.map((each, at) => [at, each]), () => element("p"), (item, each) => sentence(item, each, state.run));
  show(find("job-why-known"), told.why.length > 0);
  keyed(find("job-why"), told.why.map((each, at) => [at, each]), () => element("li"), (item, each) => sentence(item, each, state.run));
  drawMarks(told.marks, new Clock(state.unix_start, state.time), told.state);
  keyed(find("job-story"), told.story.map((each, at) => [at, each]), () => {
    const made = element("li");
    made.append(element("time"), element("p"));
    return made;
  }, (item, [, when, what]) => {
    say(item.firstChild, when);
    sentence(item.lastChild, what, state.run);
  });
  keyed(find("job-predictions"), told.predictions.map((each) => [each[0], each]), () => {
    const made = element("tr");
    made.setAttribute("role", "row");
    for (const label of ["", "told", "came", "so it was"]) {
      const cell = element("td");
      cell.setAttribute("role", "cell");
      cell.dataset.label = label;
      made.append(cell);
    }
    return made;
  }, (line, each) => each.forEach((text, at) => {
    say(line.children[at], text);
    if (at === 3) style(line.children[at], text.startsWith("missed") || text.startsWith("too short") ? "late" : "");
  }));
  const user = find("job-user");
  show(user, told.user !== null);
  if (told.user !== null) link(user, address(state.run, {find: `user ${told.user}`}), `all jobs of user ${told.user}`);
}

function drawMarks(marks, clock, at) {
  const {submitted, started, ended, expected_end: expected, limit, starts, now} = marks;
  const bars = [["waited", submitted, started ?? now, started === null ? "has waited" : "waited"]];
  if (started !== null) bars.push(["ran", started, ended ?? now, ended === null ? "has run" : "ran"]);
  if (at === "running" && expected !== null && expected > now) bars.push(["to-come", now, expected, "to its expected end"]);
  const ticks = [];
  if (ended === null) ticks.push(["now", now, "now"]);
  if (starts !== null && started === null) ticks.push(["by", starts, "expected to start"]);
  if (started !== null && limit) ticks.push(["limit", started + limit, ended === null ? "its limit" : "its limit was"]);
  const last = Math.max(submitted + 1, ...bars.map(([, , end]) => end), ...ticks.map(([, second]) => second));
  const place = (second) => `${(100 * (Math.max(submitted, second) - submitted) / (last - submitted)).toFixed(2)}%`;
  keyed(find("bars"), [...bars, ...ticks.map(([name, second]) => [name, second, null])].map((each) => [each[0], each]),
    ([name, , end]) => element("span", `${end === null ? "tick" : "bar"} ${name}`), (bar, [, start, end]) => {
      bar.style.setProperty("--from", place(start));
      if (end !== null) bar.style.setProperty("--to", place(end));
    });
  const told = bars.map(([name, start, end, what]) => [name, `${what} ${duration(end - start)}`, `${clock.short(start)} to ${clock.short(end)}`]);
  for (const [name, second, what] of ticks) told.push([`tick ${name}`, what, clock.short(second)]);
  keyed(find("points"), told.map((each) => [each[0], each]), ([name]) => {
    const made = element("li");
    made.append(element("i", name), element("b"), element("span"));
    return made;
  }, (item, [, what, when]) => {
    say(item.children[1], what);
    say(item.children[2], when);
  });
}

const FOUND = ["job", "state", "processors", "submitted"];

export function drawFound(told, state) {
  const clock = new Clock(state.unix_start, state.time), whose = told.of === null ? told.name : `${told.of} ${told.name}`;
  link(find("found-back"), address(state.run), `${state.cluster} under ${state.name}`);
  say(find("found-title"), `${told.of === null ? "Search for" : "Jobs of"} ${whose}`);
  say(find("found-count"), told.of === null ? (told.job === null ? "No job, user, account or partition of this name is remembered." : "")
    : told.count === 0 ? `No job of ${whose} is remembered.`
    : told.count > told.jobs.length ? `The last ${told.jobs.length} of ${count(told.count)}.` : "");
  show(find("found-table"), told.jobs.length > 0);
  show(find("found-job"), told.job !== null);
  if (told.job !== null) sentence(find("found-job"), `There is a job ${told.job[1]}, which ${STATES[told.job[3]]}.`, state.run);
  show(find("found-also"), told.also.length > 0);
  keyed(find("found-also"), told.also.map((kind) => [kind, kind]), () => element("a"), (item, kind) => {
    link(item, address(state.run, {find: `${kind} ${told.name}`}), `Jobs of ${kind} ${told.name}`);
  });
  keyed(find("found"), told.jobs.map((each) => [each[0], each]), () => {
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

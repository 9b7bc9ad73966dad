// Waiting jobs and their reasons, running jobs and their ends, decisions.
import {address, element, find, jobId, keyed, link, say, sentence, show, style, userName} from "./dom.js";
import {count, duration, percent} from "./format.js";

function row(...cells) {
  const made = element("tr");
  made.setAttribute("role", "row");  // without roles, a table drawn as a grid on a phone is no table for screen readers
  for (const [name, label] of cells) {
    const cell = element("td", name);
    cell.setAttribute("role", "cell");
    cell.dataset.label = label;
    made.append(cell);
  }
  return made;
}

function lines(cell, ...texts) {
  const wanted = texts.filter(Boolean);
  keyed(cell, wanted.map(([text, name], at) => [at, [text, name]]), () => element("span"), (child, [text, name]) => {
    say(child, text);
    style(child, name ? `line ${name}` : "line");
  });
}

function jobAndUser(cell, run, number, user) {
  if (!cell.firstChild) cell.append(element("a"), element("a", "user"));
  link(cell.firstChild, address(run, {job: number}), jobId(number));
  show(cell.lastChild, user !== null);
  if (user !== null) link(cell.lastChild, address(run, {find: `user ${userName(user)}`}), `user ${userName(user)}`);
}

// The line below a prediction that does not hold; `since` is a second of the log.
function doubt(entry, of, clock) {
  const since = entry.untrusted[of];
  return since !== undefined && [`not to be trusted since ${clock.day(since)}`, "late"];
}

const WAITING = [["place", "place"], ["job", "job"], ["number", "processors"], ["number", "asks for"], ["number", "expected to run"],
  ["number", "has waited"], ["starts", "starts"], ["why", "why it waits"]];

// One answer: the expected start of a job, its interval, and whether it is not to be trusted.
function starts(entry, state, clock) {
  if (entry.starts === null) return [["now"]];
  const {source, expected, earliest, latest, passed} = entry.starts;
  if (passed !== null) return [["later than predicted", "late"], [`${clock.short(passed)} has passed`, "faint"]];
  if (source === "pass") return [["in the next pass"]];
  const least = earliest !== null && clock.short(earliest), most = latest !== null && clock.short(latest);
  const range = least && most ? `${least} to ${most}` : most ? `by ${most}` : least ? `${least} or later` : "";
  return [
    expected !== null ? [`about ${clock.short(expected)}`] : [range || "not known"],
    expected !== null && range && [range, "faint"],
    source === "bounds" && doubt(entry, "wait_bound", clock),
    source === "forecast" && doubt(entry, "forecast", clock),
  ];
}

// `rows` are the rows of the page that begins at index `from`; empty before they have arrived.
export function drawWaiting(state, clock, from, rows) {
  keyed(find("queue"), [...rows].map((entry, at) => [entry[0], [...entry, at]]), () => row(...WAITING), (line, [number, entry, at]) => {
    const [place, job, processors, asks, expected, waited, start, why] = line.children;
    say(place, count(entry.place ?? from + 1 + at));
    jobAndUser(job, state.run, number, entry.user);
    say(processors, count(entry.processors));
    lines(asks, [duration(entry.asks)], entry.adjusted !== null && entry.adjusted !== entry.asks && [`adjusted ${duration(entry.adjusted)}`, "faint"],
      entry.adjusted !== null && doubt(entry, "adjustment", clock));
    lines(expected, [duration(entry.expected)], entry.expected !== null && doubt(entry, "run_time", clock));
    say(waited, duration(state.time - entry.since));
    lines(start, ...starts(entry, state, clock));
    if (!why.firstChild) why.append(element("span"), element("span", "line faint"));
    sentence(why.firstChild, entry.why, state.run);
    say(why.lastChild, entry.site === null ? "" : `The site says: ${entry.site}`);
  });
  const all = state.seen?.waiting ?? state.waiting, seen = state.seen ? " that you may see" : "";
  const last = Math.min(from + rows.length, all);
  const more = all > rows.length || from > 0;
  say(find("which"), all === 0 ? `No job${seen} waits.` : more ? `${count(from + 1)} to ${count(last)} of ${count(all)}${seen}` : "");
  show(find("queue-table"), all > 0);
  show(find("pager"), more);
  find("before").disabled = from === 0;
  find("after").disabled = last >= state.waiting;
}

const RUNNING = [["job", "job"], ["number", "processors"], ["number", "has run"], ["ends", "expected end"], ["left", "left of its request"]];

export function drawRunning(state, clock) {
  const jobs = [...state.running].sort(([, one], [, other]) => (one.end ?? Infinity) - (other.end ?? Infinity));
  keyed(find("running"), jobs.map((entry) => [entry[0], entry]), () => row(...RUNNING), (line, [number, entry]) => {
    const [job, processors, ran, ends, left] = line.children;
    const so_far = Math.max(0, (entry.stopped ?? state.time) - entry.began);
    jobAndUser(job, state.run, number, entry.user);
    say(processors, count(entry.processors));
    lines(ran, [duration(so_far)], entry.trial && ["on trial", "faint"]);
    if (entry.stopped !== null) lines(ends, ["suspended"]);
    else if (entry.end === null) lines(ends, ["not known"]);
    else if (entry.end < state.time) lines(ends, [`its limit, ${clock.short(entry.end)}, has passed`, "late"]);
    else lines(ends, [clock.short(entry.end)], [entry.predicted ? `in ${duration(entry.end - state.time)}` : "its limit", "faint"],
      entry.predicted && doubt(entry, "run_time", clock));
    if (!left.firstChild) left.append(element("span"), element("span", "used"));
    const rest = entry.limit === null ? null : Math.max(0, entry.limit - so_far);
    say(left.firstChild, rest === null ? "no limit" : `${duration(rest)} of ${duration(entry.limit)}`);
    const used = entry.limit ? Math.min(1, so_far / entry.limit) : 0;
    left.lastChild.style.setProperty("--used", used.toFixed(3));
  });
  const all = state.seen?.running ?? state.running_count, more = all - state.running.size;
  say(find("more-running"), all === 0 ? `No job${state.seen ? " that you may see" : ""} runs.` : more > 0 ? `${count(state.running.size)} of ${count(all)} are listed, which are expected to end first` : "");
  show(find("running-table"), all > 0);
}

export function drawDecisions(state, clock) {
  say(find("h-decisions"), state.obeyed ? "Last decisions" : "Last advice");
  show(find("advice"), !state.obeyed);
  const newest = [...state.decisions].reverse();
  keyed(find("decisions"), newest, () => {
    const made = element("li");
    made.append(element("time"), element("p"));
    made.lastChild.append(element("span", "what"), element("span", "because"));
    return made;
  }, (item, [time, job, kind, what, because]) => {
    style(item, kind.replace(" ", "-"));
    say(item.firstChild, clock.short(time));
    sentence(item.lastChild.firstChild, job === null ? what : `job ${jobId(job)} ${what}`, state.run);
    sentence(item.lastChild.lastChild, because && `: ${because}`, state.run);
  });
  show(find("no-decisions"), newest.length === 0);
}

export function drawSizes(state, clock) {
  show(find("sizes-section"), state.sizes.length > 0);
  keyed(find("sizes"), state.sizes.map((entry) => [entry[0], entry]), () => row(["number", "procs"], ["number", "waits at most"],
    ["number", "with"], ["", "by"], ["", "as of"]), (line, [least, most, bound, share, time, grouping]) => {
    const [size, at_most, sure, by, asOf] = line.children;
    say(size, least === most ? count(least) : `${count(least)}–${count(most)}`);
    say(at_most, bound === null ? "withdrawn: too many jobs wait longer" : duration(bound));
    say(sure, percent(share));
    say(by, grouping);
    say(asOf, clock.short(time));
  });
}

export function drawBounds(state) {
  show(find("bounds-section"), state.bounds.length > 0);
  keyed(find("bounds"), state.bounds.map((entry) => [entry.grouping, entry]), () => row(["", "by"], ["number", "waits at most"],
    ["number", "shall hold for"], ["number", "held for"], ["number", "outwaited by"]), (line, entry) => {
    const [grouping, bound, shall, held, outwaited] = line.children;
    say(grouping, entry.young ? `${entry.grouping} (young: few waits are known)` : entry.grouping);
    const least = entry.lower === null ? "" : `at least ${duration(entry.lower)}${entry.bound === null ? "" : ", at most "}`;
    say(bound, entry.doubt?.withdrawn ? "withdrawn: too many jobs wait longer" : entry.bound === null && !least ? `none: ${entry.reason ?? "unknown"}` : `${least}${entry.bound === null ? "" : duration(entry.bound)}`);
    say(shall, percent(entry.quantile));
    say(held, entry.covered === null ? "–" : `${percent(entry.covered)} of ${count(entry.revealed)}`);
    style(held, entry.covered !== null && entry.covered < entry.low ? "number late" : "number");
    say(outwaited, entry.doubt ? `${count(entry.doubt.outwaited)} of ${count(entry.doubt.waiting)} waiting` : "–");
    style(outwaited, entry.doubt?.high ? "number late" : "number");
  });
}

export function drawRanges(state) {
  show(find("ranges-section"), state.ranges.length > 0);
  keyed(find("ranges"), state.ranges.map((entry, at) => [at, entry]), () => row(["", "queue"], ["", "ranges found"],
    ["number", "waits"], ["", "site's own"], ["number", "waits"]), (line, entry) => {
    entry.forEach((text, at) => say(line.children[at], text));
  });
}

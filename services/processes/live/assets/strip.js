// The machine over the last day and the next hours: processors of each user, idle processors, and the number of waiting jobs.
import {address, element, find, jobId, keyed, say, userName} from "./dom.js";
import {Clock, count, duration, portions} from "./format.js";

const PAST = 86400, FUTURE = 6 * 3600, FARTHEST = 12 * 3600, LEAST = 2 * 3600;
const QUEUE = 46, GAP = 14, AXIS = 20, LEFT = 44;
const NAMED = 6;
const CLEARLY = 1.5;  // least ratio of a user's work to that of the user whose colour is taken over

const canvas = find("strip");
const users = new Map();  // a user keeps the colour until another has clearly more work
const REST_MS = 250;
let drawn = null, painted = -REST_MS, later, tints;
let boxes = [];

function named(blocks, from, now) {
  const work = new Map();
  for (const [, user, start, end, runs, rows] of blocks) {
    const processors = rows.reduce((sum, entry, at) => sum + (at % 2 ? entry : 0), 0);
    work.set(user, (work.get(user) ?? 0) + processors * Math.max(0, (runs ? now : end) - Math.max(start, from)));
  }
  const most = [...work].filter(([, of]) => of > 0).sort(([, one], [, other]) => other - one);
  const first = most.slice(0, NAMED).map(([user]) => user);
  for (const user of users.keys()) if (!most.slice(0, 2 * NAMED).some(([entry]) => entry === user)) users.delete(user);
  const taken = new Set(users.values());
  for (const user of first.filter((entry) => !users.has(entry))) {
    let colour = [...Array(NAMED).keys()].find((entry) => !taken.has(entry));
    if (colour === undefined) {
      const least = [...users.keys()].reduce((one, other) => (work.get(other) < work.get(one) ? other : one));
      if (work.get(user) < CLEARLY * work.get(least)) continue;
      colour = users.get(least);
      users.delete(least);
    }
    taken.add(colour);
    users.set(user, colour);
  }
  return work;
}

function colours() {
  // light-dark() is evaluated where a colour is used, not where it is defined
  tints ??= Object.fromEntries(["ink", "faint", "line", "idle", "other", "queued"].map((name) => {
    find("tint").style.setProperty("color", `var(--${name})`);
    return [name, getComputedStyle(find("tint")).color];
  }));
  return tints;
}

// The picture is painted at most four times a second, not for each event.
export function drawStrip(state) {
  drawn = state;
  if (later) return;
  const rest = REST_MS - (performance.now() - painted);
  if (rest <= 0) paint();
  else later = setTimeout(paint, rest);
}

function paint() {
  later = clearTimeout(later);
  painted = performance.now();
  const state = drawn;
  const width = canvas.clientWidth, height = canvas.clientHeight, ratio = devicePixelRatio || 1;
  if (!width) return;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const brush = canvas.getContext("2d"), colour = colours(), clock = new Clock(state.unix_start, state.time);
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
  brush.clearRect(0, 0, width, height);
  brush.font = "12px system-ui, sans-serif";
  const now = state.time, from = now - Math.min(PAST, Math.max(LEAST, now - state.began));
  const farthest = Math.max(0, ...state.planned.map(([, , end]) => end - now));
  const to = now + Math.min(FARTHEST, Math.max(FUTURE, 3 * 3600 * Math.ceil(farthest / 3 / 3600)));
  const blocks = [...state.blocks.values()];
  const covered = Math.min(now, Math.max(from, state.covered_from));
  const work = named(blocks, covered, now);
  const bottom = height - QUEUE - GAP - AXIS, right = width - 1;
  const rows = Math.max(1, state.processors, ...blocks.map(([, , , , , entry]) => (entry.length ? entry.at(-2) + entry.at(-1) : 0)));
  const x = (second) => LEFT + (right - LEFT) * (Math.min(to, Math.max(from, second)) - from) / (to - from);
  const y = (row) => bottom - (bottom - 4) * row / rows;
  brush.fillStyle = colour.idle;
  brush.fillRect(LEFT, 4, right - LEFT, bottom - 4);
  boxes = [];
  const gap = (bottom - 4) / rows > 3 ? 0.5 : 0;
  const box = (start, end, row, many, fill, alpha, what) => {
    const left = x(start), top = y(row + many), wide = Math.max(0.8, x(end) - left), high = y(row) - top;
    brush.globalAlpha = alpha;
    brush.fillStyle = fill;
    brush.fillRect(left, top + gap, Math.max(0.6, wide - (wide > 3 ? 0.6 : 0)), Math.max(0.6, high - 2 * gap));
    boxes.push([left, top, wide, high, what]);
  };
  for (const [job, user, start, end, runs, pieces] of blocks) {
    const fill = users.has(user) ? state.palette[users.get(user)] : colour.other;
    const what = {job, user, start, end, runs, pieces};
    for (let at = 0; at < pieces.length; at += 2) {
      if (runs) {
        box(start, now, pieces[at], pieces[at + 1], fill, 1, what);
        if (end === null || end > now) box(now, end ?? to, pieces[at], pieces[at + 1], fill, 0.35, what);
      } else if (end > from) box(start, end, pieces[at], pieces[at + 1], fill, 1, what);
    }
  }
  brush.globalAlpha = 1;
  for (const [job, start, end, forecast, pieces] of state.planned) {
    if (start >= to) continue;
    for (let at = 0; at < pieces.length; at += 2) {
      const left = x(start), top = y(pieces[at] + pieces[at + 1]), wide = x(end) - left, high = y(pieces[at]) - top;
      brush.strokeStyle = colour.ink;
      brush.setLineDash(forecast ? [2, 2] : [5, 3]);
      brush.strokeRect(left + 0.5, top + 0.5, Math.max(1, wide - 1), Math.max(1, high - 1));
      brush.fillStyle = colour.ink;
      if (wide > 34 && high > 13) brush.fillText(jobId(job), left + 4, top + 12);
      boxes.push([left, top, wide, high, {job, start, end, planned: true, forecast, pieces}]);
    }
  }
  brush.setLineDash([]);
  waitingJobs(brush, state, colour, {from, now, x, left: LEFT, right, top: bottom + GAP, bottom: bottom + GAP + QUEUE});
  brush.fillStyle = colour.faint;
  brush.textAlign = "right";
  brush.fillText(count(rows), LEFT - 6, 14);
  brush.fillText("0", LEFT - 6, bottom);
  axis(brush, clock, colour, {from, to, x, height, bottom, width});
  brush.strokeStyle = colour.ink;
  brush.beginPath();
  brush.moveTo(x(now), 0);
  brush.lineTo(x(now), height - AXIS);
  brush.stroke();
  brush.textAlign = "left";
  tellInWords(state, clock, work, covered);
}

function waitingJobs(brush, state, colour, {from, now, x, left, right, top, bottom}) {
  const points = [...state.history].map(([second, waiting]) => [Number(second), waiting]).filter(([second]) => second >= from - 300);
  points.push([now, state.waiting]);
  const most = Math.max(1, ...points.map(([, waiting]) => waiting));
  brush.strokeStyle = colour.line;
  brush.strokeRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
  brush.fillStyle = colour.queued;
  brush.beginPath();
  brush.moveTo(x(points[0][0]), bottom);
  let high = bottom;
  for (const [second, waiting] of points) {
    brush.lineTo(x(second), high);
    high = bottom - (bottom - top - 3) * waiting / most;
    brush.lineTo(x(second), high);
  }
  brush.lineTo(x(now), bottom);
  brush.globalAlpha = 0.75;
  brush.fill();
  brush.globalAlpha = 1;
  brush.fillStyle = colour.faint;
  brush.textAlign = "right";
  brush.fillText(count(most), left - 6, top + 12);
}

function axis(brush, clock, colour, {from, to, x, height, width}) {
  const hours = width < 560 ? 6 : 3;
  const step = hours * 3600;
  brush.textAlign = "center";
  brush.strokeStyle = colour.line;
  for (let second = Math.ceil((from + clock.start) / step) * step - clock.start; second < to; second += step) {
    const at = Math.round(x(second)) + 0.5;
    brush.beginPath();
    brush.moveTo(at, height - AXIS);
    brush.lineTo(at, height - AXIS + 4);
    brush.stroke();
    const label = (second + clock.start) % 86400 === 0 ? clock.day(second) : clock.time(second);
    if (at > 20 && at < width - 16) brush.fillText(label, at, height - 3);
  }
}

const nameOf = (user) => (typeof user === "number" ? `user ${userName(user)}` : user ?? "user unknown");

// The shares are of the time since `covered`, from which on the picture has all jobs.
function tellInWords(state, clock, work, covered) {
  const shares = portions(work, [...users.keys()], state.processors * Math.max(1, state.time - covered));
  const items = shares.named.map(([user, share]) => [`u${user}`, [user, state.palette[users.get(user)], share]]);
  if (shares.others !== null) items.push(["others", ["others", "var(--other)", shares.others]]);
  items.push(["idle", [state.undrawn ? "idle or not drawn" : "idle", "var(--idle)", shares.left]]);
  keyed(find("legend"), items, () => {
    const made = element("li");
    made.append(element("span", "key"), element("a"));
    return made;
  }, (item, [user, colour, of]) => {
    item.firstChild.style.setProperty("--key", colour);
    if (typeof user === "number") item.lastChild.setAttribute("href", address(state.run, {find: `user ${userName(user)}`}));
    say(item.lastChild, `${nameOf(user)}: ${of}`);
  });
  const words = `Processors in use over the last ${duration(state.time - covered)}, and their expected use. ` +
    items.map(([, [user, , of]]) => `${nameOf(user)}: ${of}`).join(", ");
  if (canvas.getAttribute("aria-label") !== words) canvas.setAttribute("aria-label", words);
  const begins = Math.max(state.time - PAST, state.began);
  const late = covered > begins + 300 ? `Jobs that ended before ${clock.short(covered)} are not drawn, because there are too many. ` : "";
  say(find("strip-note"), late + state.undrawn);
}

function under(event) {
  const at = canvas.getBoundingClientRect(), left = event.clientX - at.left, top = event.clientY - at.top;
  return boxes.findLast(([x, y, wide, high]) => left >= x && left <= x + wide && top >= y && top <= y + high)?.[4];
}

canvas.addEventListener("pointermove", (event) => {
  const what = under(event), tip = find("tip");
  tip.hidden = !what;
  canvas.style.cursor = what ? "pointer" : "";
  if (!what || !drawn) return;
  const clock = new Clock(drawn.unix_start, drawn.time);
  const processors = what.pieces.reduce((sum, entry, at) => sum + (at % 2 ? entry : 0), 0);
  const when = what.planned ? `${what.forecast ? "is forecast" : "is expected"} to start at ${clock.short(what.start)}`
    : what.runs ? `since ${clock.short(what.start)}${what.end === null ? "" : `, expected to end at ${clock.short(what.end)}`}`
    : `${clock.short(what.start)} to ${clock.short(what.end)} (${duration(what.end - what.start)})`;
  say(tip, `job ${jobId(what.job)}${what.user === undefined || what.user === null ? "" : `, user ${userName(what.user)}`}, ${count(processors)} procs: ${when}`);
  const place = canvas.parentElement.getBoundingClientRect();
  const left = Math.min(event.clientX - place.left + 12, place.width - tip.offsetWidth - 4);
  tip.style.setProperty("left", `${Math.max(0, left)}px`);
  tip.style.setProperty("top", `${event.clientY - place.top + 16}px`);
});
canvas.addEventListener("pointerleave", () => { find("tip").hidden = true; });

// `open` is called with a clicked job.
export function whenChosen(open) {
  canvas.addEventListener("click", (event) => { const what = under(event); if (what) open(what.job); });
}

const again = () => { if (drawn) paint(); };
new ResizeObserver(again).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { tints = undefined; again(); });

// The page of advice: a form, and the known facts about such a job.
import {address, element, find, keyed, link, say, show, style, tell} from "./dom.js";
import {Clock, count, duration, hoursMinutes, percent} from "./format.js";
import {fill, table} from "./grid.js";

const HOUR = 3600, MINUTE = 60;
export const ASKED = ["processors", "requested_time", "user", "group", "executable", "queue", "risk", "moldable"];

const form = find("advise");
const field = (name) => form.elements.namedItem(name);

// The values of the form, by the names of the server's parameters. The server refuses invalid values.
export function readForm() {
  const asked = {};
  for (const name of ASKED) {
    const value = name === "moldable" ? (field(name).checked ? "true" : "") : field(name).value.trim();
    if (value !== "") asked[name] = value;
  }
  const time = /^\d+([.,]\d+)?$/.test(asked.requested_time ?? "") ? Number(asked.requested_time.replace(",", ".")) : null;
  if (time !== null) asked.requested_time = String(Math.round(time * Number(field("unit").value)));
  return asked;
}

export function fillForm(data) {
  for (const name of ASKED) {
    if (name === "moldable") field(name).checked = data.moldable === "true";
    else field(name).value = data[name] ?? "";
  }
  const seconds = /^\d+$/.test(data.requested_time ?? "") ? Number(data.requested_time) : null;
  const unit = seconds === null || seconds % HOUR === 0 ? HOUR : seconds % MINUTE === 0 ? MINUTE : 1;
  field("unit").value = String(unit);
  if (seconds !== null) field("requested_time").value = String(seconds / unit);
  if (data.group || data.executable || data.queue || data.moldable) find("advise-more").open = true;
}

// `problem` has the server's name of the field at fault.
function drawProblem(problem) {
  const at = ASKED.includes(problem?.parameter) ? field(problem.parameter) : null;
  for (const name of ASKED) tell(field(name), "aria-invalid", String(field(name) === at));
  const label = at?.labels[0].textContent.trim(), own = `${problem?.parameter}: `;
  say(find("advise-problem"), !problem ? "" : label && problem.error.startsWith(own) ? `${label}: ${problem.error.slice(own.length)}` : problem.error);
  if (at?.closest("details")) at.closest("details").open = true;
  at?.focus();
}

function headline(data, risk) {
  const [own, ...others] = data.alternatives, best = data.alternatives.find((entry) => entry.advised);
  const within = `a risk of at most ${percent(risk)} of being cut`, has = `its risk of being cut is ${percent(own.cut)}`;
  if (!best) return `No request is advised: ${data.unadvised}.`;
  if (own.mean_wait === null && best === own) return `Keep your request: ${has}. No start is forecast: ${own.reason ?? "nothing is known"}.`;
  if (best === own) return others.length ? `Keep your request: ${has}, and no other with ${within} ends earlier.` : `Keep your request: ${has}, and there is no alternative.`;
  const what = `Request ${hoursMinutes(best.requested_time)} on ${count(best.processors)} processor${best.processors === 1 ? "" : "s"}`;
  if (best.mean_end === null || own.mean_end === null) return `${what}: its risk of being cut is ${percent(best.cut)}, not ${percent(own.cut)}.`;
  const earlier = own.mean_end - best.mean_end;
  const beside = Math.abs(earlier) < MINUTE ? "as early as with your request" : `${duration(Math.abs(earlier))} ${earlier > 0 ? "earlier" : "later"} than with your request`;
  return `${what}: its risk of being cut is ${percent(best.cut)}, not ${percent(own.cut)}, and it ends in ${duration(best.mean_end)} on average, ${beside}.`;
}

const TIMES = ["with probability", "it runs no longer than", "it starts within"];
const RUNS = "Run times are requests with at most the remaining risk of being cut: several may be the same.";
const OTHERS = ["request", "processors", "cut", "mean wait", "50 % start in", "90 % start in", "mean end", "note"];
const BOUNDS = ["by", "waits at most", "shall hold for"];

const grids = {
  "advice-times": table(TIMES, "how long it would run and wait"),
  "advice-others": table(OTHERS, "alternatives to the request", true),
  "advice-bounds": table(BOUNDS, "bounds on its wait"),
};
for (const [id, grid] of Object.entries(grids)) find(id).append(grid);

function draw(data, asked, clock) {
  const own = data.alternatives[0], run = data.run_time, risk = Number(asked.risk ?? 0.05);
  say(find("advice-head"), headline(data, risk));
  say(find("advice-cut"), run.mean === null ? `Its run time: ${run.reason}.`
    : `It is cut at its request of ${hoursMinutes(own.requested_time)} with probability ${percent(run.cut)}; it runs ${duration(run.mean)} on average (from ${count(run.observations)} jobs).`);
  const runs = new Map(run.quantiles), starts = new Map(own.starts_within);
  const shares = [...(runs.size ? runs : starts).keys()];
  fill(grids["advice-times"], TIMES, shares.map((share) => [`${+(100 * share).toFixed(1)} %`, duration(runs.get(share)), duration(starts.get(share))]));
  show(find("advice-times"), shares.length > 0);
  say(find("advice-runs"), runs.size ? RUNS : "");
  const reasons = [...new Set(data.alternatives.map((entry) => entry.reason).filter(Boolean))];
  say(find("advice-reasons"), reasons.length && own.mean_wait !== null ? `No start is forecast for some: ${reasons.join("; ")}. ${data.note ?? ""}` : data.note ?? "");
  fill(grids["advice-others"], OTHERS, data.alternatives.map((entry, at) => {
    const within = new Map(entry.starts_within);
    const mark = [at ? "" : "your request", entry.advised ? "advised" : entry.pareto_best ? "not beaten" : ""].filter(Boolean).join(", ");
    return [hoursMinutes(entry.requested_time), count(entry.processors), percent(entry.cut), duration(entry.mean_wait), duration(within.get(0.5)),
      duration(within.get(0.9)), duration(entry.mean_end), mark];
  }), (line, at) => style(line, data.alternatives[at].advised ? "advised" : ""));
  const bounds = data.bounds;
  fill(grids["advice-bounds"], BOUNDS, bounds.map((entry) => [entry.queue === null ? entry.grouping : `${entry.grouping}, queue ${entry.queue}`,
    entry.bound === null ? `none: ${entry.reason ?? "unknown"}` : duration(entry.bound), percent(entry.quantile)]));
  show(find("advice-bounded"), bounds.length > 0);
  say(find("advice-as-of"), `Run ${data.run}; state of ${data.as_of.map((entry) => `${entry.stage} at ${clock.full(entry.time)} (event ${count(entry.sequence)})`).join(", ")}.`);
}

// `data` is the answer to `asked`; without an answer, `problem` is the reason. While `busy`, the answer is pending.
export function drawAdvice({data, problem, asked, busy, drawn}, state) {
  link(find("advice-back"), address(state.run), `${state.cluster} under ${state.name}`);
  say(find("advice-cluster"), `What to ask for on ${state.cluster}`);
  say(find("advise-busy"), busy ? "asking …" : "");
  if (drawn) return;
  drawProblem(problem);
  show(find("advice-answer"), Boolean(data));
  if (data) draw(data, asked, new Clock(state.unix_start, state.time));
}

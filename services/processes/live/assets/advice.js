// What to ask for: a form, and what is known of such a job.
import {address, element, find, keyed, link, say, show, style, tell} from "./dom.js";
import {Clock, count, duration, percent} from "./format.js";
import {fill, table} from "./grid.js";

const HOUR = 3600, MINUTE = 60;
export const ASKED = ["processors", "requested_time", "user", "group", "executable", "queue", "risk", "moldable"];

const form = find("advise");
const field = (name) => form.elements.namedItem(name);

// What the form asks, by the names that the server has for it; what cannot be read is for the server to refuse.
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

// `problem` names the field at fault by the server's word for it.
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
  const within = `cut with at most ${percent(risk)}`;
  if (!best) return `None is advised: ${data.unadvised}.`;
  if (own.mean_wait === null && best === own) return `Ask as you do: it is ${within}. No start is forecast: ${own.reason ?? "nothing is known"}.`;
  if (best === own) return others.length ? `Ask as you do: of what is ${within}, nothing ends earlier.` : `Nothing else is to be tried: it is ${within}.`;
  const what = `Ask for ${duration(best.requested_time)} on ${count(best.processors)} processor${best.processors === 1 ? "" : "s"}`;
  if (best.mean_end === null || own.mean_end === null) return `${what}: its risk of being cut is ${percent(best.cut)}, not ${percent(own.cut)}.`;
  const earlier = own.mean_end - best.mean_end;
  const beside = Math.abs(earlier) < MINUTE ? "as early as with what you ask" : `${duration(Math.abs(earlier))} ${earlier > 0 ? "earlier" : "later"} than with what you ask`;
  return `${what}: its risk of being cut is ${percent(best.cut)}, not ${percent(own.cut)}, and it ends in ${duration(best.mean_end)} on average, ${beside}.`;
}

const TIMES = ["with probability", "it runs no longer than", "it starts within"];
const OTHERS = ["request", "processors", "cut", "mean wait", "50 % start in", "90 % start in", "mean end", "so it is"];
const BOUNDS = ["by", "waits at most", "shall hold for"];

const grids = {
  "advice-times": table(TIMES, "how long it would run and wait"),
  "advice-others": table(OTHERS, "ways to ask for it", true),
  "advice-bounds": table(BOUNDS, "bounds on its wait"),
};
for (const [id, grid] of Object.entries(grids)) find(id).append(grid);

function draw(data, asked, clock) {
  const own = data.alternatives[0], run = data.run_time, risk = Number(asked.risk ?? 0.05);
  say(find("advice-head"), headline(data, risk));
  say(find("advice-cut"), run.mean === null ? `Its run time: ${run.reason}.`
    : `It is cut at its request of ${duration(own.requested_time)} with probability ${percent(run.cut)}; it runs ${duration(run.mean)} on average (from ${count(run.observations)} jobs).`);
  const runs = new Map(run.quantiles), starts = new Map(own.starts_within);
  const shares = [...(runs.size ? runs : starts).keys()];
  fill(grids["advice-times"], TIMES, shares.map((share) => [`${+(100 * share).toFixed(1)} %`, duration(runs.get(share)), duration(starts.get(share))]));
  show(find("advice-times"), shares.length > 0);
  const reasons = [...new Set(data.alternatives.map((entry) => entry.reason).filter(Boolean))];
  say(find("advice-reasons"), reasons.length && own.mean_wait !== null ? `No start is forecast for some: ${reasons.join("; ")}. ${data.note ?? ""}` : data.note ?? "");
  fill(grids["advice-others"], OTHERS, data.alternatives.map((entry, at) => {
    const within = new Map(entry.starts_within);
    const mark = [at ? "" : "as you ask", entry.advised ? "advised" : entry.pareto_best ? "not beaten" : ""].filter(Boolean).join(", ");
    return [duration(entry.requested_time), count(entry.processors), percent(entry.cut), duration(entry.mean_wait), duration(within.get(0.5)),
      duration(within.get(0.9)), duration(entry.mean_end), mark];
  }), (line, at) => style(line, data.alternatives[at].advised ? "advised" : ""));
  const bounds = data.bounds.filter((entry) => entry.bound !== null);
  fill(grids["advice-bounds"], BOUNDS, bounds.map((entry) => [entry.queue === null ? entry.grouping : `${entry.grouping}, queue ${entry.queue}`,
    duration(entry.bound), percent(entry.quantile)]));
  show(find("advice-bounded"), bounds.length > 0);
  say(find("advice-as-of"), `Of run ${data.run}; state of ${data.as_of.map((entry) => `${entry.stage} at ${clock.short(entry.time)} (event ${count(entry.sequence)})`).join(", ")}.`);
}

// `data` is the answer to `asked`, if there is one; `problem` is why there is none. While `busy`, it is on its way.
export function drawAdvice({data, problem, asked, busy, drawn}, state) {
  link(find("advice-back"), address(state.run), `${state.cluster} under ${state.name}`);
  say(find("advice-cluster"), `What to ask for on ${state.cluster}`);
  say(find("advise-busy"), busy ? "asking …" : "");
  if (drawn) return;
  drawProblem(problem);
  show(find("advice-answer"), Boolean(data));
  if (data) draw(data, asked, new Clock(state.unix_start, state.time));
}

// The newest state of a run, updated by /events. It sends the changed parts, and of tables only the changed rows.
const AGAIN_MS = 2000;
const SILENT_MS = 30000;
const ROWS = new Set(["queue", "running", "decisions", "blocks", "history", "ids", "users"]);

function take(state, data) {
  for (const [name, part] of Object.entries(data)) {
    if (!ROWS.has(name)) { if (part === null) delete state[name]; else state[name] = part; continue; }
    const rows = (state[name] ??= new Map());
    if (part === null) { rows.clear(); continue; }
    for (const key of part.drop) rows.delete(key);
    for (const [key, row] of part.set) rows.set(key, row);
  }
}

export class Stream {
  // `changed` gets the state after each change, `connected` whether there is a connection.
  constructor(changed, connected) {
    this.changed = changed;
    this.connected = connected;
    this.state = null;
    this.source = null;
    this.run = null;
    this.heard = 0;
    setInterval(() => { if (Date.now() - this.heard > SILENT_MS) { connected(false); this.open(this.run); } }, AGAIN_MS);
  }

  open(run) {
    if (this.source) this.source.close();
    this.run = run;
    this.heard = Date.now();
    const source = this.source = new EventSource(run ? `events?run=${encodeURIComponent(run)}` : "events");
    const alive = () => { this.heard = Date.now(); this.connected(true); };
    source.onopen = alive;
    source.addEventListener("alive", alive);
    source.onmessage = (event) => {
      alive();
      const {anew, ...data} = JSON.parse(event.data);
      if (anew) this.state = {};
      take(this.state, data);
      this.changed(this.state);
    };
    source.onerror = () => {
      this.connected(false);
      if (source.readyState === EventSource.CLOSED && source === this.source) {
        setTimeout(() => this.open(this.run), AGAIN_MS);  // refused: the browser gave up
      }
    };
  }
}

// The answer, or the problem if there is none.
export async function question(path, parameters) {
  try {
    const answer = await fetch(`${path}?${new URLSearchParams(parameters)}`), data = await answer.json();
    return answer.ok ? {data, problem: null} : {data: null, problem: data};
  } catch {
    return {data: null, problem: {error: "No answer: is the process of the live page still running?", parameter: null}};
  }
}

export async function ask(path, parameters) {
  const answer = await fetch(`${path}?${new URLSearchParams(parameters)}`);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

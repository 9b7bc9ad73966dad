// Figures and times of the log as text for people.
const DAY = 86400, FAR = 180 * DAY;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const known = (value) => value !== null && value !== undefined;
const two = (value) => String(value).padStart(2, "0");

const WHOLE = new Intl.NumberFormat("en");  // made once, because making one takes longer than the rest of an update
const TENTHS = new Intl.NumberFormat("en", {minimumFractionDigits: 1, maximumFractionDigits: 1});

export const count = (value) => (known(value) ? WHOLE.format(value) : "–");
export const percent = (share) => (known(share) ? `${(100 * share).toFixed(1)} %` : "–");

// A share as a whole number of percent. Only exactly 0 and 1 are 0 % and 100 %.
export function whole(share) {
  const rounded = Math.round(100 * share);
  if (rounded === 0 && share > 0) return "< 1 %";
  return rounded === 100 && share < 1 ? "> 99 %" : `${rounded} %`;
}

// The shares of users in a machine's capacity, in processor seconds: each of `named`, then others together, then what is left.
// `work` has the work of each user; it can exceed the capacity where the machine has shrunk.
export function portions(work, named, capacity) {
  const total = [...work.values()].reduce((sum, entry) => sum + entry, 0), all = Math.max(1, capacity, total);
  const own = named.map((user) => [user, work.get(user) ?? 0]).sort(([, one], [, other]) => other - one);
  const rest = total - own.reduce((sum, [, of]) => sum + of, 0);
  return {named: own.map(([user, of]) => [user, whole(of / all)]), others: rest / all > 0.005 ? whole(rest / all) : null,
    left: whole(Math.max(0, capacity - total) / all)};
}

export function duration(seconds) {
  if (!known(seconds)) return "–";
  if (seconds >= 3600) return `${TENTHS.format(seconds / 3600)} h`;
  return seconds >= 60 ? `${(seconds / 60).toFixed(1)} min` : `${Math.round(seconds)} s`;
}

// A requested time in hours and minutes, with seconds unless they are 0.
export function hoursMinutes(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}${seconds % 60 ? `:${two(seconds % 60)}` : ""} h`;
}

// The clock of a log. `start` is the Unix time of second 0; if it is unknown (0), times are days since second 0.
export class Clock {
  constructor(start, now) { this.start = start; this.now = now; }

  day(second) {
    const days = Math.floor((this.start + second) / DAY);
    if (!this.start) return `${days} d`;
    const date = new Date(days * DAY * 1000);
    return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  }

  time(second, seconds = false) {
    const rest = (((this.start + second) % DAY) + DAY) % DAY;
    const minute = `${two(Math.floor(rest / 3600))}:${two(Math.floor(rest / 60) % 60)}`;
    return seconds ? `${minute}:${two(rest % 60)}` : minute;
  }

  year(second) { return this.start ? ` ${new Date((this.start + second) * 1000).getUTCFullYear()}` : ""; }

  // The date is left out if it is the present one. It has its year if it is far away.
  short(second) {
    if (Math.floor((this.start + second) / DAY) === Math.floor((this.start + this.now) / DAY)) return this.time(second);
    return `${this.day(second)}${Math.abs(second - this.now) > FAR ? this.year(second) : ""} ${this.time(second)}`;
  }

  full(second) {
    return `${this.day(second)}${this.year(second)} ${this.time(second, true)}${this.start ? " UTC" : ""}`;
  }
}

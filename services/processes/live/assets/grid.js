// Tables of texts. The first column has the headings of the rows.
import {element, keyed, say, tell} from "./dom.js";

// A table with these headings. `named` is its name for screen readers.
export function table(headings, named, cards) {
  const outer = element("div", "wide"), made = element("table", cards ? "grid cards" : "grid"), head = element("thead"), body = element("tbody"), line = element("tr");
  const roles = [[made, "table"], [head, "rowgroup"], [body, "rowgroup"], [line, "row"], [outer, "group"]];
  for (const [place, role] of roles) tell(place, "role", role);  // without roles, a table drawn as a grid on a phone is no table for screen readers
  for (const place of [outer, made]) tell(place, "aria-label", named);
  outer.tabIndex = 0;
  headings.forEach((entry, at) => {
    const cell = element("th", at ? "number" : "", entry);
    tell(cell, "role", "columnheader");
    tell(cell, "scope", "col");
    line.append(cell);
  });
  head.append(line);
  made.append(head, body);
  outer.append(made);
  return outer;
}

// One row for each list of texts. `dress` is called with each row and its index.
export function fill(outer, headings, rows, dress = () => {}) {
  keyed(outer.querySelector("tbody"), rows.map((entry, at) => [at, entry]), () => {
    const line = element("tr");
    tell(line, "role", "row");
    headings.forEach((label, at) => {
      const cell = element(at ? "td" : "th", at ? "number" : "job");
      tell(cell, "role", at ? "cell" : "rowheader");
      if (!at) tell(cell, "scope", "row");
      cell.dataset.label = label;
      line.append(cell);
    });
    return line;
  }, (line, texts, place) => {
    texts.forEach((text, at) => say(line.children[at], text));
    dress(line, place);
  });
}

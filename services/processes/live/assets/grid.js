// Tables of texts, whose first column heads the rows.
import {element, keyed, say, tell} from "./dom.js";

// A table with these headings, of which the first heads each row; `named` is its name.
export function table(headings, named, cards) {
  const outer = element("div", "wide"), made = element("table", cards ? "grid cards" : "grid"), head = element("thead"), body = element("tbody"), line = element("tr");
  const roles = [[made, "table"], [head, "rowgroup"], [body, "rowgroup"], [line, "row"], [outer, "group"]];
  for (const [place, role] of roles) tell(place, "role", role);  // as grids on a phone they would be none
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

// One row for each list of texts; `dress` gets each line and its place.
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


"use strict";
(() => {
  const CUT_AT = 600;      // characters of a text in its row
  const BEFORE_MATCH = 60; // characters before the first match of a search
  const OVERSCAN = 6;      // rows beyond either edge of what is visible

  const data = JSON.parse(document.getElementById("data").textContent);
  const n = data.total;
  const here = data.ids.length; // fewer than n where not all texts are on the page
  const partial = here < n;
  const at = (id) => document.getElementById(id);
  const number = (value) => value.toLocaleString("en");
  const percent = (part, whole) => (100 * part / whole).toFixed(1) + "%";
  const longest = data.ids.reduce((most, id) => Math.max(most, id.length), 0);
  const pen = document.createElement("canvas").getContext("2d");
  let texts = data.texts; // as they are shown and searched: masked, until somebody asks otherwise
  let haystack = searched();
  for (const selector of data.selectors) {
    const largest = selector.scores.reduce((most, score) => Math.max(most, Math.abs(score)), 0);
    const digits = largest > 0 ? 4 - Math.floor(Math.log10(largest)) : 0;
    selector.decimals = Math.min(12, Math.max(0, digits));
  }

  const state = {
    first: 0, second: -1, terms: [], filter: "all", key: "rank", ascending: true,
    // The start page's link names the budget of the list that it recommends.
    budget: /^#[\d.]+$/.test(location.hash) ? location.hash.slice(1) : data.budgets[0] || "0.1",
    removed: 0, active: -1,
  };
  let order = []; // positions in data, as shown
  let widths = [];     // of each text in pixels, as far as they are known
  const lines = [];    // of each row as shown
  let tops = [0];      // where each of them begins, and the last one ends
  let drawn = "";

  function searched() {
    return data.ids.map((id, i) => (id + "\n" + texts[i]).toLowerCase());
  }

  // A budget's share and count floor(budget * n), exact for the decimal as it is written; null for
  // what is no share.
  function parse(budget) {
    const match = /^\s*(\d*)(?:[.,](\d*))?\s*(%?)\s*$/.exec(budget);
    if (!match || !(match[1] || match[2])) return null;
    const fraction = match[2] || "";
    const scale = 10n ** BigInt(fraction.length + (match[3] ? 2 : 0));
    const exact = BigInt(match[1] + fraction);
    if (exact > scale) return null;
    return { count: Number(exact * BigInt(n) / scale), share: Number(exact) / Number(scale) };
  }

  const ranks = (which) => data.selectors[which].ranks;
  const removedBy = (which, i) => ranks(which)[i] <= state.removed;
  const comparing = () => state.second >= 0;
  const name = (which) => data.selectors[which].name;
  const offered = (which) => name(which) + (data.selectors[which].compared ? " (comparison)" : "");
  // In how many of a selector's rankings, its own and those made again, the budget removes a text.
  const rankings = (which) => 1 + data.selectors[which].again.length;
  const times = (which, i) => data.selectors[which].again.reduce(
    (sum, again) => sum + (again[i] <= state.removed), Number(removedBy(which, i)));
  const surely = (which, i) => times(which, i) === rankings(which);
  const shownScore = (selector, i) => selector.scores[i].toFixed(selector.decimals);

  const KEYS = {
    rank: { ascending: true, of: () => (i) => ranks(state.first)[i] },
    score: { ascending: false, of: () => (i) => data.selectors[state.first].scores[i] },
    rank2: { ascending: true, of: () => (i) => ranks(state.second)[i] },
    difference: {
      ascending: false,
      of: () => (i) => ranks(state.second)[i] - ranks(state.first)[i],
    },
    often: { ascending: false, of: () => (i) => times(state.first, i) },
    id: { ascending: true, of: null },
  };

  function columns() {
    const head = (key, label, kind, width, title) => ({ key, label, kind, width, title });
    const label = comparing() ? "Rank: " + name(state.first) : "Rank";
    const found = [
      head("rank", label, "number", comparing() ? "7.5rem" : "6rem"),
      head("score", "Score", "number score", "6rem", "Score by " + name(state.first)),
    ];
    if (comparing()) {
      found.push(head("rank2", "Rank: " + name(state.second), "number", "7.5rem"));
      found.push(head("difference", "Difference", "number difference", "7.5rem",
        "Rank by " + name(state.second) + " less rank by " + name(state.first) +
        ": positive where " + name(state.first) + " removes it earlier"));
    }
    found.push(head(null, "At this budget", "verdict", comparing() ? "8rem" : "10rem"));
    found.push(head("often", "Rankings", "number often", "6.5rem", "In how many of " +
      rankings(state.first) + " rankings by " + name(state.first) +
      ", this one and others with other seeds, the budget removes it"));
    found.push(head("id", "Id", "id", Math.min(18, 2 + 0.55 * longest) + "rem"));
    found.push(head(null, "Text", "text", "auto"));
    return found;
  }

  const FILTERS = {
    all: () => true,
    removed: (i) => removedBy(state.first, i),
    kept: (i) => !removedBy(state.first, i),
    surely: (i) => surely(state.first, i),
    tossup: (i) => !surely(state.first, i) && times(state.first, i) > 0,
    both: (i) => removedBy(state.first, i) && removedBy(state.second, i),
    first: (i) => removedBy(state.first, i) && !removedBy(state.second, i),
    second: (i) => !removedBy(state.first, i) && removedBy(state.second, i),
    neither: (i) => !removedBy(state.first, i) && !removedBy(state.second, i),
  };

  function filterNames() {
    const often = { surely: "surely removed", tossup: "toss-up" };
    if (!comparing()) return { all: "all", removed: "removed", kept: "kept", ...often };
    return {
      all: "all", both: "removed by both", first: "removed by " + name(state.first) + " only",
      second: "removed by " + name(state.second) + " only", neither: "kept by both", ...often,
    };
  }

  function verdict(i) {
    const first = removedBy(state.first, i);
    if (!comparing()) return first ? "removed" : "kept";
    const second = removedBy(state.second, i);
    if (first && second) return "removed by both";
    if (first || second) return "only by " + name(first ? state.first : state.second);
    return "kept by both";
  }

  function make(tag, text, kind) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  }

  // State to rows ---------------------------------------------------------------------------------

  function arrange() {
    const keep = FILTERS[state.filter];
    order = [];
    for (let i = 0; i < here; i++) {
      if (state.terms.every((term) => haystack[i].includes(term)) && keep(i)) order.push(i);
    }
    const sign = state.ascending ? 1 : -1;
    const tie = ranks(state.first);
    if (state.key === "id") {
      const ids = data.ids;
      order.sort((a, b) => sign * (ids[a] < ids[b] ? -1 : ids[a] > ids[b] ? 1 : 0));
    } else {
      const value = KEYS[state.key].of();
      order.sort((a, b) => sign * (value(a) - value(b)) || tie[a] - tie[b]);
    }
    state.active = -1;
  }

  function refresh(fromTop) {
    arrange();
    heads();
    summarize();
    if (fromTop) at("scroller").scrollTop = 0;
    measure();
  }

  function heads() {
    const shown = columns();
    at("columns").replaceChildren(...shown.map((column) => {
      const element = make("col");
      element.style.width = column.width;
      element.className = column.kind;
      return element;
    }));
    const held = document.activeElement && document.activeElement.dataset.key;
    at("heads").replaceChildren(...shown.map((column) => {
      const cell = make("th", undefined, column.kind);
      cell.scope = "col";
      if (column.title) cell.title = column.title;
      if (!column.key) {
        cell.append(make("span", column.label));
        return cell;
      }
      const sorted = column.key === state.key;
      cell.setAttribute("aria-sort",
        sorted ? (state.ascending ? "ascending" : "descending") : "none");
      const button = make("button", column.label);
      button.type = "button";
      button.dataset.key = column.key;
      button.addEventListener("click", () => sortBy(column.key));
      cell.append(button);
      return cell;
    }));
    if (held) {
      const button = at("heads").querySelector('[data-key="' + held + '"]');
      if (button) button.focus();
    }
    at("ranking").setAttribute("aria-rowcount", String(order.length + 1));
    at("ranking").setAttribute("aria-colcount", String(shown.length));
  }

  function summarize() {
    const k = state.removed;
    const summary = at("summary");
    let told = "Budget " + state.budget + ": " + number(k) + " of " + number(n) +
      " removed, " + number(n - k) + " kept. ";
    let listed = 0;
    let sure = 0;
    for (let i = 0; i < here; i++) {
      listed += removedBy(state.first, i);
      sure += surely(state.first, i);
    }
    if (partial) told += "On this page " + number(listed) + " removed. ";
    if (listed && rankings(state.first) > 1) {
      told += number(sure) + " removed by all " + rankings(state.first) + " rankings of " +
        name(state.first) + ", " + number(listed - sure) + " toss-ups. ";
    }
    Object.assign(summary.dataset, { removed: k, kept: n - k, shown: order.length, surely: sure });
    delete summary.dataset.overlap;
    if (comparing()) {
      let both = 0;
      for (let i = 0; i < here; i++) both += FILTERS.both(i);
      summary.dataset.overlap = both;
      if (listed) {
        told += name(state.first) + " and " + name(state.second) + " share " + number(both) +
          " of them (" + percent(both, listed) + "; chance " + percent(k, n) + "). ";
      }
    }
    if (order.length < here) {
      const gone = order.reduce((sum, i) => sum + removedBy(state.first, i), 0);
      told += "Shown: " + number(order.length) + ", of which " + number(gone) + " removed" +
        (comparing() ? " by " + name(state.first) : "") + ".";
    }
    summary.textContent = told;
  }

  // Rows to the screen ----------------------------------------------------------------------------

  function preview(i) {
    const text = texts[i];
    const pattern = matcher();
    const match = pattern ? text.search(pattern) : -1;
    let start = match > 2 * BEFORE_MATCH ? match - BEFORE_MATCH : 0;
    let end = Math.min(text.length, start + CUT_AT);
    if (/[\uDC00-\uDFFF]/.test(text.charAt(start))) start++;
    if (end < text.length && /[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end--;
    return (start ? "…" : "") + text.slice(start, end).replace(/\s+/g, " ").trim() +
      (end < text.length ? "…" : "");
  }

  function matcher() {
    if (!state.terms.length) return null;
    const escaped = state.terms.map((term) => term.replace(/[.*+?^${}()|[\]\\\/]/g, "\\$&"));
    return new RegExp(escaped.join("|"), "giu");
  }

  function fill(element, text) {
    const pattern = matcher();
    let from = 0;
    for (const match of pattern ? text.matchAll(pattern) : []) {
      element.append(text.slice(from, match.index), make("mark", match[0]));
      from = match.index + match[0].length;
    }
    element.append(text.slice(from));
    return element;
  }

  function cell(kind, content, searched) {
    const box = make("div");
    if (searched) fill(box, content); else box.textContent = content;
    if (kind === "text") box.dir = "auto";
    const element = make("td", undefined, kind);
    element.append(box);
    return element;
  }

  // The cut is a line where the rows go by the rank that it cuts.
  function lineAbove(place) {
    const by = { rank: state.first, rank2: state.second }[state.key];
    if (by === undefined || place === 0) return false;
    return removedBy(by, order[place]) !== removedBy(by, order[place - 1]);
  }

  function row(place) {
    const i = order[place];
    const first = data.selectors[state.first];
    const element = make("tr", undefined, "item");
    element.id = "row-" + place;
    element.dataset.place = place;
    element.setAttribute("aria-rowindex", String(place + 2));
    element.style.setProperty("--row", tops[place + 1] - tops[place] + "px");
    element.style.setProperty("--lines", lines[place]);
    element.classList.toggle("removed", removedBy(state.first, i));
    element.classList.toggle("line", lineAbove(place));
    element.classList.toggle("active", place === state.active);
    element.append(cell("number", number(first.ranks[i])),
      cell("number score", shownScore(first, i)));
    if (comparing()) {
      const other = ranks(state.second)[i];
      element.append(cell("number", number(other)),
        cell("number difference", number(other - first.ranks[i])));
    }
    element.append(cell("verdict", verdict(i)),
      cell("number often", times(state.first, i) + " of " + rankings(state.first)),
      cell("id", data.ids[i], true), cell("text", preview(i), true));
    return element;
  }

  function space(height) {
    const element = make("tr", undefined, "space");
    const inside = make("td");
    inside.style.height = height + "px";
    element.setAttribute("aria-hidden", "true");
    element.append(inside);
    return element;
  }

  function place(from, to) {
    const found = [];
    if (from > 0) found.push(space(tops[from]));
    for (let p = from; p < to; p++) found.push(row(p));
    if (to < order.length) found.push(space(tops[order.length] - tops[to]));
    if (!order.length) {
      const none = make("tr", undefined, "none");
      const inside = make("td", partial ? "No text of this page matches." : "No text matches.");
      inside.colSpan = 3; // as many columns as there are on the narrowest screen
      none.append(inside);
      found.push(none);
    }
    at("rows").replaceChildren(...found);
    const active = at("row-" + state.active);
    if (active) at("ranking").setAttribute("aria-activedescendant", active.id);
    else at("ranking").removeAttribute("aria-activedescendant");
  }

  function draw(anew) {
    const scroller = at("scroller");
    const from = Math.max(0, rowAt(scroller.scrollTop) - OVERSCAN);
    const last = rowAt(scroller.scrollTop + scroller.clientHeight) + OVERSCAN;
    const to = Math.min(order.length, last + 1);
    const span = from + "-" + to;
    if (!anew && span === drawn) return;
    drawn = span;
    place(from, to);
  }

  // The row at so many pixels from the top.
  function rowAt(y) {
    let low = 0;
    for (let high = order.length; high - low > 1;) {
      const middle = (low + high) >> 1;
      if (tops[middle] <= y) low = middle;
      else high = middle;
    }
    return low;
  }

  // A row has as many lines as its own text needs, of at most three.
  function measure() {
    const { fontFamily } = getComputedStyle(document.body);
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const room = Math.max(10 * rem, at("heads").lastElementChild.clientWidth - rem);
    const least = comparing() ? 2 : 1;
    pen.font = 0.9 * rem + "px " + fontFamily;
    tops = [0];
    order.forEach((i, place) => {
      widths[i] ??= pen.measureText(texts[i].slice(0, CUT_AT)).width;
      // Lines end with a word.
      const needed = widths[i] <= room ? 1 : Math.ceil(widths[i] / (room - 2 * rem));
      lines[place] = Math.min(3, Math.max(needed, least));
      tops.push(tops[place] + Math.round((1.1 + 1.17 * lines[place]) * rem));
    });
    draw(true);
  }

  function reveal(where, middle) {
    const scroller = at("scroller");
    const head = at("heads").offsetHeight;
    const room = scroller.clientHeight - head;
    const top = tops[where];
    if (middle) scroller.scrollTop = top - room / 2;
    else if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (tops[where + 1] > scroller.scrollTop + room) {
      scroller.scrollTop = tops[where + 1] - room;
    }
    draw(true);
  }

  // What a user does ------------------------------------------------------------------------------

  function sortBy(key) {
    state.ascending = key === state.key ? !state.ascending : KEYS[key].ascending;
    state.key = key;
    refresh(true);
  }

  function setBudget(text) {
    const found = parse(text);
    at("budget").setAttribute("aria-invalid", String(found === null));
    at("refused").textContent = found === null ? "a share from 0 to 1, or a percentage" : "";
    if (found === null) return;
    state.budget = text.trim();
    state.removed = found.count;
    at("slider").value = String(found.share);
    for (const button of at("presets").children) {
      button.setAttribute("aria-pressed", String(button.textContent === state.budget));
    }
    refresh(false);
  }

  function offer(select, options, chosen) {
    select.replaceChildren(...Object.entries(options).map(([value, label]) => {
      const option = make("option", label);
      option.value = value;
      return option;
    }));
    select.value = chosen;
  }

  function offerFilters() {
    const names = filterNames();
    if (!(state.filter in names)) state.filter = "all";
    offer(at("filter"), names, state.filter);
  }

  function offerSecond() {
    const names = { "-1": "none" };
    data.selectors.forEach((_, which) => {
      if (which !== state.first) names[" " + which] = offered(which);
    });
    if (state.second === state.first) state.second = -1;
    if (!comparing() && (state.key === "rank2" || state.key === "difference")) {
      Object.assign(state, { key: "rank", ascending: true });
    }
    offer(at("second"), names, comparing() ? " " + state.second : "-1");
    document.body.classList.toggle("compared", data.selectors[state.first].compared);
    at("verdict").textContent = name(state.first) + ": " + data.selectors[state.first].verdict + ".";
    offerFilters();
  }

  function jump() {
    if (state.key !== "rank" && state.key !== "rank2") {
      Object.assign(state, { key: "rank", ascending: true });
      refresh(false);
    }
    const found = order.findIndex((_, where) => lineAbove(where));
    if (found > 0) reveal(found, true);
  }

  function open(where) {
    const i = order[where];
    at("detail-id").textContent = data.ids[i];
    at("detail-ranks").replaceChildren(...data.selectors.map((selector) => {
      const line = make("tr");
      line.append(make("td", selector.name), make("td", number(selector.ranks[i])),
        make("td", shownScore(selector, i)));
      return line;
    }));
    at("detail-text").replaceChildren();
    fill(at("detail-text"), texts[i]);
    at("detail").showModal();
    at("detail").scrollTop = 0;
  }

  // Out of the page -------------------------------------------------------------------------------

  // As `inert` in io/tables.py: no spreadsheet runs it, and a number stays one.
  function inert(text) {
    const runs = /^(?:[\s\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/.test(text);
    return runs && !/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? "'" + text : text;
  }

  function csvCell(value) {
    const text = typeof value === "string" ? inert(value) : String(value);
    return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  }

  function csv(positions) {
    const first = data.selectors[state.first];
    const found = [
      ["id", (i) => data.ids[i]], ["selector", () => first.name],
      ["budget", () => state.budget], ["rank", (i) => first.ranks[i]],
      ["score", (i) => first.scores[i]], ["at_this_budget", verdict],
      ["removed_by", (i) => times(state.first, i)], ["rankings", () => rankings(state.first)],
    ];
    if (comparing()) {
      found.push(["other_selector", () => name(state.second)],
        ["other_rank", (i) => ranks(state.second)[i]]);
    }
    found.push(["text", (i) => texts[i]]);
    const lines = [found.map(([head]) => head),
      ...positions.map((i) => found.map(([, of]) => csvCell(of(i))))];
    return lines.map((cells) => cells.join(",") + "\n").join("");
  }

  function save(what, positions) {
    const words = [document.title, name(state.first), state.budget, what];
    const link = make("a");
    link.download = words.join(" ").replace(/[^\w.-]+/g, "_") + ".csv";
    link.href = URL.createObjectURL(new Blob([csv(positions)], { type: "text/csv" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    const lacking = what === "cut" ? state.removed - positions.length : 0;
    at("saved").textContent = number(positions.length) + " texts: " + link.download +
      (lacking ? " (" + number(lacking) + " of the cut are not on this page)" : "");
  }

  function cut() {
    const found = [];
    ranks(state.first).forEach((rank, i) => {
      if (rank <= state.removed) found[rank - 1] = i;
    });
    return found.filter((i) => i !== undefined);
  }

  // By keyboard -----------------------------------------------------------------------------------

  function move(event) {
    const { scrollTop, clientHeight } = at("scroller");
    const visible = rowAt(scrollTop);
    const page = Math.max(1, rowAt(scrollTop + clientHeight) - visible - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (event.target !== at("ranking") || !order.length) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && state.active >= 0) open(state.active);
    else if (event.key in steps) {
      const next = state.active < 0 ? visible : state.active + steps[event.key];
      state.active = Math.min(order.length - 1, Math.max(0, next));
    } else if (event.key === "Home") state.active = 0;
    else if (event.key === "End") state.active = order.length - 1;
    else return;
    event.preventDefault();
    reveal(state.active, false);
  }

  at("search").addEventListener("input", (event) => {
    state.terms = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    refresh(true);
  });
  at("first").addEventListener("change", (event) => {
    state.first = Number(event.target.value);
    offerSecond();
    refresh(true);
  });
  at("second").addEventListener("change", (event) => {
    state.second = Number(event.target.value);
    offerSecond();
    refresh(true);
  });
  at("filter").addEventListener("change", (event) => {
    state.filter = event.target.value;
    refresh(true);
  });
  at("budget").addEventListener("input", (event) => setBudget(event.target.value));
  at("slider").addEventListener("input", (event) => {
    at("budget").value = event.target.value;
    setBudget(event.target.value);
  });
  at("jump").addEventListener("click", jump);
  at("save-cut").addEventListener("click", () => save("cut", cut()));
  at("save-shown").addEventListener("click", () => save("shown", order));
  at("unmask").addEventListener("change", (event) => {
    texts = data.texts.map((text, i) => event.target.checked && data.unmasked[i] || text);
    haystack = searched();
    widths = [];
    refresh(false);
  });
  at("scroller").addEventListener("scroll", () => draw(false), { passive: true });
  at("ranking").addEventListener("keydown", move);
  at("rows").addEventListener("click", (event) => {
    const line = event.target.closest("tr.item");
    // Somebody who marks words to copy them does not want the text opened.
    if (!line || String(getSelection())) return;
    state.active = Number(line.dataset.place);
    draw(true);
    open(state.active);
  });
  at("close").addEventListener("click", () => at("detail").close());
  at("detail").addEventListener("close", () => at("ranking").focus({ preventScroll: true }));
  new ResizeObserver(() => measure()).observe(at("scroller"));

  for (const budget of data.budgets) {
    const button = make("button", budget);
    button.type = "button";
    button.addEventListener("click", () => {
      at("budget").value = budget;
      setBudget(budget);
    });
    at("presets").append(button);
  }
  at("provenance").textContent = JSON.stringify(data.provenance, null, 2);
  at("partial").textContent = !partial ? "" : "The first " + number(here) + " of " + number(n) +
    " texts by " + name(0) + " are on this page, and searched, filtered and counted. All are ranked " +
    "in the tables of scores beside it.";
  const chosen = Object.fromEntries(data.selectors.map((_, which) => [which, offered(which)]));
  offer(at("first"), chosen, "0");
  offerSecond();
  at("budget").value = state.budget;
  setBudget(state.budget);
})();

// A query's answers: a chart over the windows of some groups, and the rows that are in view.
"use strict";

(() => {
  const about = Object.values(trends.data)[0];
  const MOST_CHOSEN = 8;
  const LISTED = 100; // groups in the list at once
  const PAGE = 25; // rows
  const LOG_FROM = 6; // decades
  const LARGEST = 300; // decades that a number of JavaScript holds, about
  const DRAWN = 2000; // points of a line, about: more than it has pixels
  const MARKED = 400; // points up to which each has a mark of its own

  const byId = (id) => document.getElementById(id);
  const [chart, note, item, scale, day, list, search] = ["chart", "chart-note", "item", "scale", "day", "group-list", "group-search"].map(byId);
  const labels = about.groups.map((group) => group.label.join(" · "));
  const bySize = about.groups.map((_, at) => at).sort((a, b) => about.groups[b].rows - about.groups[a].rows);
  const chosen = new Set(bySize.slice(0, about.groups.length <= MOST_CHOSEN ? MOST_CHOSEN : 4));
  const decoded = new Map();
  let range = null; // of time that is shown
  let rows = []; // in view: [group, row]
  let first = 0; // of the rows on the page

  // ------------------------------------------------------------------------------------------------------- values

  async function group(at) {
    if (!decoded.has(at)) {
      const path = about.chunks[about.groups[at].chunk];
      await trends.load(path);
      const columns = trends.data[path.split("/").pop().replace(/\.js$/, "")][at];
      let time = 0;
      decoded.set(at, { ...columns, t: Float64Array.from(columns.t, (step) => (time += step)), rounded: new Set(columns.rounded) });
    }
    return decoded.get(at);
  }

  function text(columns, name, at) {
    const value = (columns[name].x ?? columns[name].v)[at];
    return value === null ? "" : String(value);
  }

  // An exact integer with its digits in groups of three, as far as that is readable.
  function readable(value) { return /^-?\d{4,30}$/.test(value) ? value.replace(/\B(?=(\d{3})+$)/g, ",") : value; }

  function logarithm(columns, name, at) {
    const values = columns[name];
    if (values.y) return values.y[at];
    return values.v[at] > 0 ? Math.log10(values.v[at]) : null;
  }

  function plain(columns, name, at) {
    const values = columns[name];
    if (values.v) return values.v[at];
    if (values.x[at] === null) return null;
    const number = Number(values.x[at]);
    if (Number.isFinite(number)) return number;
    return values.y[at] === null ? 0 : (values.x[at].startsWith("-") ? -1 : 1) * 10 ** values.y[at];
  }

  function moment(ms) {
    const micros = Math.round((ms - Math.floor(ms)) * 1000);
    const shown = new Date(Math.floor(ms)).toISOString().replace("T", " ").replace("Z", "");
    return micros ? shown + String(micros).padStart(3, "0") : shown.replace(/\.000$/, "");
  }

  // -------------------------------------------------------------------------------------------------------- chart

  function isLog(shown) {
    if (scale.value !== "auto") return scale.value === "log";
    return shown.count && (shown.top ?? 0) > LOG_FROM;
  }

  // The first of some ascending numbers that is not below a value.
  function firstFrom(numbers, value) {
    let low = 0, high = numbers.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The rows of a line that are drawn: all in view, or of each of some stretches the least and the greatest, as a line of
  // so few pixels shows no more. One beyond either edge, so that the line goes on.
  function drawnRows(columns, y) {
    const from = range ? Math.max(0, firstFrom(columns.t, range[0]) - 1) : 0;
    const upto = range ? Math.min(columns.t.length, firstFrom(columns.t, range[1]) + 1) : columns.t.length;
    const size = Math.ceil((2 * (upto - from)) / DRAWN);
    const kept = [];
    for (let start = from; start < upto; start += size) {
      let low = -1, high = -1;
      for (let at = start; at < Math.min(start + size, upto); at++) {
        if (size <= 2) kept.push(at);
        else if (y[at] !== null) {
          if (low < 0 || y[at] < y[low]) low = at;
          if (high < 0 || y[at] > y[high]) high = at;
        }
      }
      if (low >= 0) kept.push(...(low === high ? [low] : [Math.min(low, high), Math.max(low, high)]));
    }
    return { kept, size };
  }

  // The points of a line, with a gap where windows have no row.
  function points(columns, name, value) {
    const all = Array.from(columns.t, (_, at) => value(columns, name, at));
    const { kept, size } = drawnRows(columns, all);
    const thinned = size > 2;
    const longest = about.slide ? about.slide * (thinned ? 2 * size : 1.5) : Infinity; // between two windows of one line
    const x = [], y = [], rows = [];
    kept.forEach((at, number) => {
      if (number && columns.t[at] - columns.t[kept[number - 1]] > longest) {
        x.push(columns.t[kept[number - 1]] + 1);
        y.push(null);
        rows.push(null);
      }
      x.push(columns.t[at]);
      y.push(all[at]);
      rows.push(at);
    });
    return { x, y, rows, thinned };
  }

  function hover(columns, label, shown, at) {
    const revision = columns.revised[at] ? `<br>revision ${columns.revised[at]}` : "";
    const rounded = columns.rounded.has(at) ? " (rounded)" : "";
    const value = readable(text(columns, shown.name, at)).replace(/(.{60})/g, "$1<br>");
    const end = about.within === null ? "" : ` – ${moment(columns.t[at] + about.within).slice(11)}`;
    return `${label ? label.replaceAll("<", "&lt;") + "<br>" : ""}${moment(columns.t[at])}${end}<br><b>${shown.name} ${value}</b>${rounded}${revision}`;
  }

  async function draw() {
    const shown = about.items.find((one) => one.name === item.value);
    const groups = [...chosen];
    let loaded;
    try {
      loaded = await Promise.all(groups.map(group));
    } catch (error) {
      note.textContent = `${error.message}: open the page again, it may have been built anew.`;
      return;
    }
    const log = isLog(shown);
    const beyond = log && (shown.top ?? 0) > LARGEST; // its own numbers are too large: the exponents are drawn
    const value = beyond ? logarithm : plain;
    const colours = trends.colours();
    const traces = [], revised = { x: [], y: [], text: [] };
    let some = false; // of the windows are drawn
    loaded.forEach((columns, number) => {
      const { x, y, rows, thinned } = points(columns, shown.name, value);
      const label = labels[groups[number]];
      some ||= thinned;
      traces.push({
        type: "scatter",
        mode: x.length > MARKED ? "lines" : "lines+markers",
        name: label || shown.name,
        x, y,
        connectgaps: false,
        line: { width: 1.3, color: colours[number % colours.length] },
        marker: { size: 4, color: colours[number % colours.length] },
        text: rows.map((at) => (at === null ? "" : hover(columns, label, shown, at))),
        hoverinfo: "text",
      });
      for (const at of Object.keys(columns.revised).map(Number).slice(-DRAWN)) {
        revised.x.push(columns.t[at]);
        revised.y.push(value(columns, shown.name, at));
        revised.text.push(hover(columns, label, shown, at));
      }
    });
    if (revised.x.length) {
      traces.push({
        type: "scatter", mode: "markers", name: "revised", ...revised, hoverinfo: "text",
        marker: { symbol: "circle-open", size: 9, color: trends.colour("text"), line: { width: 1.4 } },
      });
    }
    const yaxis = { title: { text: shown.name }, type: log && !beyond ? "log" : "linear", exponentformat: "power" };
    if (beyond) Object.assign(yaxis, { tickprefix: "10<sup>", ticksuffix: "</sup>", separatethousands: true });
    await Plotly.react(chart, traces, trends.layout({
      xaxis: { type: "date", range: range ?? undefined, autorange: range === null },
      yaxis,
      showlegend: traces.length > 1,
      uirevision: `${shown.name} ${yaxis.type} ${beyond}`, // a zoom stays as long as the axes mean the same
    }), trends.config);
    const windows = loaded.reduce((sum, columns) => sum + columns.t.length, 0);
    note.textContent = `${windows.toLocaleString("en")} windows of ${groups.length} ${groups.length === 1 ? "line" : "lines"}, ${log ? "logarithmic" : "linear"} scale.`
      + (some ? " Of neighbouring windows the least and the greatest are drawn; zoom in for all." : "");
    refresh();
  }

  function setRange(next) {
    range = next;
    draw();
  }

  // --------------------------------------------------------------------------------------------------------- rows

  async function refresh() {
    rows = [];
    for (const at of chosen) {
      const { t } = await group(at);
      for (let row = 0; row < t.length; row++) if (!range || (t[row] >= range[0] && t[row] <= range[1])) rows.push([at, row]);
    }
    rows.sort(([a, i], [b, j]) => decoded.get(b).t[j] - decoded.get(a).t[i] || a - b);
    first = 0;
    page();
  }

  function page() {
    const header = ["window start", "window end", ...about.names, ...about.items.map((one) => one.name), "exact", "revision"];
    const from = 2 + about.names.length;
    const numbers = new Set(about.items.flatMap((one, at) => (one.number ? [from + at] : [])));
    const cells = rows.slice(first, first + PAGE).map(([at, row]) => {
      const columns = decoded.get(at);
      return [
        moment(columns.t[row]),
        about.within === null ? "" : moment(columns.t[row] + about.within),
        ...about.groups[at].label,
        ...about.items.map((one) => readable(text(columns, one.name, row))),
        columns.rounded.has(row) ? "no" : "yes",
        columns.revised[row] ?? 1,
      ];
    });
    trends.fill(byId("rows"), header, cells, numbers);
    const last = Math.min(first + PAGE, rows.length);
    byId("row-count").textContent = rows.length ? `${(first + 1).toLocaleString("en")}–${last.toLocaleString("en")} of ${rows.length.toLocaleString("en")}, newest first` : "no rows";
    byId("newer").disabled = first === 0;
    byId("older").disabled = last >= rows.length;
  }

  byId("newer").addEventListener("click", () => { first = Math.max(0, first - PAGE); page(); });
  byId("older").addEventListener("click", () => { first += PAGE; page(); });

  // ------------------------------------------------------------------------------------------------------- choices

  function listGroups() {
    const words = search.value.toLowerCase().split(/\s+/);
    const fitting = bySize.filter((at) => words.every((word) => labels[at].toLowerCase().includes(word)));
    const shown = [...fitting.filter((at) => chosen.has(at)), ...fitting.filter((at) => !chosen.has(at))].slice(0, LISTED);
    list.replaceChildren(...shown.map((at) => {
      const label = trends.element("label");
      const box = trends.element("input", null, { type: "checkbox", value: at });
      box.checked = chosen.has(at);
      box.disabled = !box.checked && chosen.size >= MOST_CHOSEN;
      box.addEventListener("change", () => {
        box.checked ? chosen.add(at) : chosen.delete(at);
        for (const other of list.querySelectorAll("input")) other.disabled = !other.checked && chosen.size >= MOST_CHOSEN;
        count(fitting.length);
        draw();
      });
      label.append(box, trends.element("span", labels[at]), trends.element("small", about.groups[at].rows.toLocaleString("en")));
      return label;
    }));
    count(fitting.length);
  }

  function count(fitting) {
    const more = fitting > LISTED ? `, ${LISTED} of ${fitting.toLocaleString("en")} listed` : "";
    byId("group-count").textContent = `${chosen.size} of ${labels.length.toLocaleString("en")} shown (at most ${MOST_CHOSEN})${more}`;
  }

  byId("group-none").addEventListener("click", () => { chosen.clear(); listGroups(); draw(); });
  search.addEventListener("input", listGroups);
  if (about.names.length) {
    byId("groups").hidden = false;
    listGroups();
  }

  item.replaceChildren(...about.items.filter((one) => one.number).map((one) => trends.element("option", one.name)));
  item.addEventListener("change", draw);
  scale.addEventListener("change", draw);

  // Days of the chosen groups, for those who cannot or will not drag over the chart.
  const DAY = 86_400_000;
  async function listDays() {
    const days = new Set();
    for (const at of chosen) for (const time of (await group(at)).t) days.add(Math.floor(time / DAY));
    day.append(...[...days].sort((a, b) => b - a).slice(0, 400).map((at) => trends.element("option", moment(at * DAY).slice(0, 10), { value: at })));
  }
  day.addEventListener("change", () => setRange(day.value === "" ? null : [day.value * DAY, (Number(day.value) + 1) * DAY]));
  byId("whole").addEventListener("click", () => { day.value = ""; setRange(null); });

  function begin() {
    trends.draws(() => draw().then(() => {
      if (chart.dataset.ready) return;
      chart.dataset.ready = "yes";
      chart.on("plotly_relayout", (change) => {
        const [low, high] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
        const time = (value) => (typeof value === "number" ? value : Date.parse(value.replace(" ", "T") + (value.includes(" ") ? "Z" : "")));
        if (low !== undefined) range = [time(low), time(high)];
        else if (change["xaxis.autorange"]) range = null;
        else return;
        draw();
      });
    }));
    listDays();
  }
  begin();
})();

// What all pages share: data that other scripts bring, filters over tables, and how charts look.
"use strict";

window.trends = (() => {
  const data = {};
  const drawings = [];
  const root = document.body.dataset.root;

  function put(name, value) { data[name] = value; }

  // Loads a script of data once; from disk, nothing else can be read.
  const loading = {};
  function load(path) {
    loading[path] ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = root + path;
      script.onload = done;
      script.onerror = () => failed(new Error(`${path} could not be loaded`));
      document.head.append(script);
    });
    return loading[path];
  }

  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); }
  function colours() { return [0, 1, 2, 3, 4, 5, 6, 7].map((at) => colour(`c${at}`)); }

  const small = window.matchMedia("(max-width: 40rem)");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function layout(more) {
    const axis = { gridcolor: colour("line"), linecolor: colour("line"), zerolinecolor: colour("line"), automargin: true };
    const { xaxis, yaxis, ...rest } = more;
    return {
      paper_bgcolor: colour("page"),
      plot_bgcolor: colour("page"),
      font: { color: colour("text"), family: "system-ui, sans-serif", size: 12 },
      colorway: colours(),
      margin: { l: 50, r: 12, t: 30, b: 40 },
      modebar: { bgcolor: "transparent", color: colour("soft"), activecolor: colour("text") },
      hoverlabel: { align: "left", namelength: -1 },
      legend: { orientation: "h", y: -0.2 },
      xaxis: { ...axis, ...xaxis },
      yaxis: { ...axis, ...yaxis },
      ...rest,
    };
  }

  // None of the others, one of which would send a chart away.
  const buttons = [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]];
  const config = { responsive: true, displaylogo: false, displayModeBar: small.matches ? false : "hover", modeBarButtons: buttons };

  // Draws now, and again when the colours of the page change.
  function draws(draw) {
    drawings.push(draw);
    draw();
  }
  dark.addEventListener("change", () => drawings.forEach((draw) => draw()));

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== null && text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  // `numbers` and `words`: the columns of numbers, and of sentences, which are given room.
  function fill(table, header, rows, numbers = new Set(), words = new Set()) {
    const name = (at) => (numbers.has(at) ? { class: "number" } : words.has(at) ? { class: "words" } : {});
    const head = element("tr");
    head.append(...header.map((text, at) => element("th", text, { scope: "col", ...name(at) })));
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren(...rows.map((cells) => {
      const row = element("tr");
      row.append(...cells.map((text, at) => element("td", text, name(at))));
      return row;
    }));
  }

  for (const filter of document.querySelectorAll("[data-filter]")) {
    const rows = [...document.getElementById(filter.dataset.filter).tBodies[0].rows];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const selects = [...filter.querySelectorAll("select")];
    const search = filter.querySelector("[data-search]");
    const apply = () => {
      const words = search.value.toLowerCase().split(/\s+/);
      let shown = 0;
      rows.forEach((row, at) => {
        const chosen = selects.every((select) => !select.value || row.dataset[select.dataset.column] === select.value);
        row.hidden = !(chosen && words.every((word) => texts[at].includes(word)));
        shown += !row.hidden;
      });
      filter.querySelector("[data-count]").textContent = `${shown} of ${rows.length}`;
    };
    for (const input of [...selects, search]) input.addEventListener("input", apply);
    apply();
  }

  return { data, put, load, colour, colours, layout, config, draws, element, fill };
})();

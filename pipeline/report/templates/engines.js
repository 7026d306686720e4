// Engines compared: time, rate and memory by events a window, or what else is varied, both axes logarithmic.
"use strict";

(() => {
  const found = trends.data.engines;
  const select = document.getElementById("comparison");
  const SHAPES = ["circle", "square", "diamond", "cross", "x", "star", "hexagon"];
  const CHARTS = {
    time: { title: "seconds", finished: (one) => one.time, stopped: (one) => one.time },
    rate: { title: "events a second", finished: (one) => one.rate, stopped: (one) => one.below },
    stored: { title: "stored at once", finished: (one) => one.stored, stopped: () => null },
  };
  const FINISHED = "finished", STOPPED = "did not finish";
  const number = (value, digits = 4) => (value === null || value === undefined ? "" : Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits }));

  function traces(one, kind) {
    const colours = trends.colours();
    return one.engines.flatMap((engine, at) => {
      const points = one.points.filter((point) => point.engine === engine).sort((a, b) => a.size - b.size);
      const line = { width: engine === "sase" ? 3 : 1.6, color: colours[at % colours.length] };
      const marker = { size: 7, symbol: SHAPES[at % SHAPES.length], color: line.color };
      const hover = (point) => `${engine}, ${one.x} ${point.size.toLocaleString("en")}<br>${point.status}${point.reason ? `: ${point.reason.replaceAll("<", "&lt;").slice(0, 90)}` : ""}<br>${CHARTS[kind].title}: ${number(point.status === FINISHED ? valueOf(point, kind) : CHARTS[kind].stopped(point))}`;
      const finished = points.filter((point) => point.status === FINISHED && valueOf(point, kind) > 0);
      const stopped = points.filter((point) => point.status === STOPPED && CHARTS[kind].stopped(point) > 0);
      const common = { type: "scatter", hoverinfo: "text", legendgroup: engine };
      return [
        { ...common, mode: "lines+markers", name: engine, line, marker, x: finished.map((p) => p.size), y: finished.map((p) => valueOf(p, kind)), text: finished.map(hover) },
        {
          ...common, mode: "markers", name: `${engine}: ${STOPPED}`, showlegend: false,
          marker: { size: 11, symbol: kind === "rate" ? "triangle-down-open" : "triangle-up-open", color: line.color, line: { width: 2 } },
          x: stopped.map((p) => p.size), y: stopped.map((p) => CHARTS[kind].stopped(p)), text: stopped.map(hover),
        },
      ].filter((trace) => trace.x.length);
    });
  }

  function valueOf(point, kind) { return CHARTS[kind].finished(point); }

  function draw() {
    const one = found[select.value];
    document.getElementById("about").textContent = one.about;
    for (const kind of Object.keys(CHARTS)) {
      Plotly.react(kind, traces(one, kind), trends.layout({
        xaxis: { type: one.points.some((point) => point.size <= 0) ? "linear" : "log", title: { text: one.x }, exponentformat: "power" },
        yaxis: { type: "log", title: { text: CHARTS[kind].title }, exponentformat: "power" },
        legend: { orientation: "h", y: -0.3 },
      }), trends.config);
    }
    const header = [one.x, "engine", "status", "seconds", "events/s", "stored", "process MB", "log10 of trends", "agrees", "reason"];
    const rows = [...one.points]
      .sort((a, b) => a.size - b.size || one.engines.indexOf(a.engine) - one.engines.indexOf(b.engine))
      .map((point) => [
        number(point.size, 12), point.engine, point.status,
        point.status === STOPPED ? (point.time === null ? "" : `> ${number(point.time)}`) : number(point.time),
        number(point.rate), number(point.stored, 12), point.memory === null ? "" : number(point.memory / 1e6),
        number(point.log10), { true: "yes", false: "no" }[point.agrees] ?? "", point.reason ?? "",
      ]);
    trends.fill(document.getElementById("points"), header, rows, new Set([0, 3, 4, 5, 6, 7]), new Set([9]));
  }

  select.addEventListener("change", draw);
  trends.draws(draw);
})();

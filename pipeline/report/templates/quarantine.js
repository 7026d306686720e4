// Quarantined rows by day and reason, a chart a dataset.
"use strict";

trends.draws(() => {
  for (const { dataset, days, reasons } of trends.data.quarantine) {
    const chart = document.getElementById(`quarantine-${dataset}`);
    if (!chart) continue;
    const bars = Object.entries(reasons).map(([reason, counts]) => ({
      type: "bar", name: reason, x: days, y: counts, hovertemplate: "%{x}<br>%{y} rows<extra>%{fullData.name}</extra>",
    }));
    Plotly.react(chart, bars, trends.layout({
      barmode: "stack",
      xaxis: { type: "category" },
      yaxis: { title: { text: "rows" }, rangemode: "tozero" },
      legend: { orientation: "h", y: -0.2, font: { size: 11 } },
    }), trends.config);
  }
});
